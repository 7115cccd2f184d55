/**
 * The smallest change of a row that changes what is predicted for it, found and said as
 * `explain/_flips.py` does.
 *
 * Between two neighbouring bounds of the tree on a number, all else being as it is, the prediction
 * does not change. So the values nearest to the row's own in every such cell are all there is to
 * try. Where no change of one feature is enough, such a change is followed by one of another.
 */

import { DAY } from "./dates.js";
import { isCategorical } from "./model.js";
import { leafOf, weigh } from "./predict.js";
import {
  ALL_DIGITS,
  beyond,
  exact,
  FEW_DIGITS,
  nextAbove,
  nextBelow,
  nextMultiple,
  numberAt,
  orderOf,
  read,
  rounded,
} from "./words.js";

// Changes of two features that are tried.
const MAX_TRIED = 20_000;

/**
 * The smallest change, the first feature's of equals, as `{ changes, size, leaf }`; null if there is
 * none. Features that `mayChange` refuses stay as they are.
 */
export function findFlip(model, row, mayChange = () => true) {
  const from = leafOf(model, row);
  const features = model.used.filter(mayChange);
  const tries = features.flatMap((feature) => changes(model, feature, row));
  let best = null;
  for (const { feature, value, size } of tries) {
    const leaf = leafOf(model, row.with(feature, value));
    if (willDo(model, from, leaf) && (best === null || size < best.size)) {
      best = { changes: [{ feature, value }], size, leaf };
    }
  }
  return best ?? findTwo(model, row, from, features, tries);
}

/** Changes of two features of a row for which one is not enough. */
function findTwo(model, row, from, features, tries) {
  if (!model.nodes.some((node) => willDo(model, from, node))) return null;
  const most = Math.max(1, Math.floor(MAX_TRIED / Math.max(1, tries.length)));
  const first = [...tries].sort((one, other) => one.size - other.size).slice(0, most);
  let best = null;
  for (const feature of features) {
    for (const one of first.filter((each) => each.feature !== feature)) {
      const changed = row.with(one.feature, one.value);
      for (const other of changes(model, feature, changed)) {
        const leaf = leafOf(model, changed.with(feature, other.value));
        const size = other.size + one.size;
        if (willDo(model, from, leaf) && (best === null || size < best.size)) {
          const both = [one, other].sort((a, b) => a.feature - b.feature);
          best = {
            changes: both.map(({ feature: f, value }) => ({ feature: f, value })),
            size,
            leaf,
          };
        }
      }
    }
  }
  return best;
}

/** Whether a leaf predicts something else; a number must be beyond the spread of the old leaf. */
function willDo(model, from, to) {
  if (model.classes) return from.predicted !== to.predicted;
  return Math.abs(to.value[0] - from.value[0]) > (from.deviation ?? 0);
}

/** What would have to change, for example "x rose from 1 to 2". */
export function flipInWords(model, row, flip) {
  let shown = flip.changes.map((_, place) => shownValue(model, row, flip, place));
  if (shown.length > 1 && !leadsThere(model, row, flip, shown)) {
    shown = flip.changes.map(({ feature, value }) => exactly(model, feature, value));
  }
  return flip.changes.map((change, place) => changeInWords(model, row, change, shown[place]));
}

function changeInWords(model, row, { feature, value }, shown) {
  const info = model.features[feature];
  const old = row[feature];
  if (old === null) return `${info.name} were ${shown} instead of missing`;
  if (isCategorical(info)) return `${info.name} were ${shown} instead of ${info.categories[old]}`;
  if (info.date) return `${info.name} were ${shown} instead of ${exact(old, info.date)}`;
  const verb = value > old ? "rose" : "fell";
  return `${info.name} ${verb} from ${oldInWords(old, value, shown)} to ${shown}`;
}

/** The row's number, in as few digits as keep it on its side of the number shown. */
function oldInWords(from, to, shown) {
  for (let digits = FEW_DIGITS; digits < ALL_DIGITS; digits += 1) {
    const text = rounded(from, digits);
    if (to > from ? Number(shown) > Number(text) : Number(shown) < Number(text)) return text;
  }
  return exact(from);
}

// --- values to try ---

function changes(model, feature, row) {
  if (!isCategorical(model.features[feature])) return changesOfNumber(model, feature, row);
  return differentCategories(model, feature)
    .filter((code) => code !== row[feature])
    .map((value) => ({ feature, value, size: 1 }));
}

/** The first categories of those that the tree treats alike. */
function differentCategories(model, feature) {
  const groups = categoryGroups(model, feature);
  const first = new Map();
  for (const code of model.features[feature].categories.keys()) {
    const key = groups.map((group) => (group.includes(code) ? "1" : "0")).join("");
    if (!first.has(key)) first.set(key, code);
  }
  return [...first.values()];
}

/** Groups of categories that some node treats alike. */
function categoryGroups(model, feature) {
  return nodesOf(model, feature).flatMap((node) => {
    if (node.segments) return node.segments.map((segment) => segment.codes);
    const side = node.features.indexOf(feature);
    const bounds = node.regions.flatMap((region) => region.bounds);
    const inside = bounds.filter((bound) => bound.weights[side] && bound.codes);
    return [...inside.map((bound) => bound.codes), node.missingCodes[side]];
  });
}

function changesOfNumber(model, feature, row) {
  const own = row[feature];
  const step = stepOf(model.features[feature]);
  const limits = limitsOf(model.features[feature]);
  const edges = cellEdges(model, feature, row);
  return [...edges, Infinity].flatMap((high, i) => {
    const low = i === 0 ? -Infinity : edges[i - 1];
    if (own !== null && low < own && own <= high) return [];
    const value = nearest(own, low, high, step, limits);
    if (value === null) return [];
    return [{ feature, value, size: changeSize(model.features[feature], own, value) }];
  });
}

/** Size of a change in standard deviations; 1 for a value instead of a missing one. */
function changeSize(info, own, value) {
  if (own === null) return 1;
  const finite = Math.min(Math.max(own, -Number.MAX_VALUE), Number.MAX_VALUE);
  return Math.abs(value - finite) / info.scale;
}

/** What the numbers of a feature are multiples of; null if there is no such number. */
function stepOf({ whole, date }) {
  if (date) return date === "day" ? DAY : null;
  return whole ? 1 : null;
}

/** Between which numbers a flip may choose: the least and the greatest of training. */
function limitsOf({ range }) {
  return [range?.[0] ?? -Infinity, range?.[1] ?? Infinity];
}

/** The nearest value above a number, at most another and within limits, a multiple of a step; null if there is none. */
function nearest(own, above, upTo, step, [first, last]) {
  if (own === null && above === -Infinity && upTo === Infinity)
    return Math.min(Math.max(0, first), last);
  const goesUp = own === null ? upTo === Infinity : own <= above;
  const low = Math.max(above, nextBelow(first));
  const high = Math.min(upTo, last);
  const least = step ? nextMultiple(low, step) : nextAbove(low);
  const value = goesUp ? least : step ? step * Math.floor(high / step) : high;
  return value > low && value <= high && Number.isFinite(value) ? value : null;
}

/** Greatest values of all but the last cell, ascending. */
function cellEdges(model, feature, row) {
  const edges = nodesOf(model, feature).flatMap((node) => {
    if (node.segments) return node.segments.map((segment) => segment.high).filter(Number.isFinite);
    const bounds = node.regions.flatMap((region) => region.bounds);
    return bounds.flatMap((bound) => boundEdges(node, bound, feature, row));
  });
  return [...new Set(edges)].sort((a, b) => a - b);
}

function boundEdges(node, bound, feature, row) {
  const side = node.features.indexOf(feature);
  const limits = [bound.low, bound.high].filter(Number.isFinite);
  if (!bound.weights[side]) return [];
  if (!bound.weights[1 - side]) return limits;
  const other = row[node.features[1 - side]];
  return limits.map((limit) => crossing(other, bound.weights, side, limit));
}

/**
 * The greatest value on the lower side of a cut, given the other feature's.
 *
 * Sums are rounded, so it is found by bisection over all numbers. Where the other feature is
 * missing, the cut is nowhere: at infinity.
 */
function crossing(other, weights, side, limit) {
  if (other === null) return Infinity;
  const isLow = (value) => {
    const isBelow = weigh(weights, side === 0 ? [value, other] : [other, value]) <= limit;
    return weights[side] > 0 ? isBelow : !isBelow;
  };
  let [low, high] = [orderOf(-Number.MAX_VALUE), orderOf(Number.MAX_VALUE)];
  while (low < high) {
    const middle = high - (high - low) / 2n;
    if (isLow(numberAt(middle))) low = middle;
    else high = middle - 1n;
  }
  const found = numberAt(low);
  return isLow(found) ? found : -Infinity;
}

function nodesOf(model, feature) {
  return model.nodes.filter((node) => node.features.includes(feature));
}

// --- what to say of them ---

/** A value, in as few digits as can be, that leads to the same leaf and goes hardly farther. */
function shownValue(model, row, flip, place) {
  const { feature, value } = flip.changes[place];
  if (isCategorical(model.features[feature])) return exactly(model, feature, value);
  const changed = changedRow(row, flip.changes);
  const { date } = model.features[feature];
  const [least, greatest] = limitsOf(model.features[feature]);
  const texts = beyond(value, row[feature] ?? NaN, date);
  const isTrue = (text) => {
    const shown = read(text, date);
    const isSeen = least <= shown && shown <= greatest;
    return isSeen && leafOf(model, changed.with(feature, shown)) === flip.leaf;
  };
  return texts.slice(0, -1).find(isTrue) ?? texts.at(-1);
}

function exactly(model, feature, value) {
  const info = model.features[feature];
  return isCategorical(info) ? info.categories[value] : exact(value, info.date);
}

/** Whether what is shown of several changes leads to their leaf. */
function leadsThere(model, row, flip, shown) {
  const changed = flip.changes.map(({ feature, value }, place) => ({
    feature,
    value: isCategorical(model.features[feature])
      ? value
      : read(shown[place], model.features[feature].date),
  }));
  return leafOf(model, changedRow(row, changed)) === flip.leaf;
}

function changedRow(row, all) {
  return all.reduce((changed, { feature, value }) => changed.with(feature, value), row);
}
