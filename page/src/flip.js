/**
 * The smallest change of a single feature that changes a row's prediction, found and said as
 * `explain/_flips.py` does.
 *
 * Between two neighbouring bounds of the tree on a number, all else being as it is, the prediction
 * does not change. So the values nearest to the row's own in every such cell are all there is to try.
 */

import { isCategorical } from "./model.js";
import { leafOf, weigh } from "./predict.js";
import {
  ALL_DIGITS,
  beyond,
  exact,
  FEW_DIGITS,
  nextAbove,
  nextWhole,
  numberAt,
  orderOf,
  rounded,
} from "./words.js";

/** The smallest change, the first feature's of equals; null if there is none. */
export function findFlip(model, row) {
  const outcome = outcomeOf(leafOf(model, row));
  let best = null;
  for (const feature of model.used) {
    for (const { value, size } of changes(model, feature, row)) {
      const leaf = leafOf(model, changed(row, feature, value));
      if (outcomeOf(leaf) !== outcome && (best === null || size < best.size)) {
        best = { feature, value, size, leaf };
      }
    }
  }
  return best;
}

/** What would have to change, for example "rose from 1 to 2". */
export function changeInWords(model, row, flip) {
  const info = model.features[flip.feature];
  const old = row[flip.feature];
  const shown = isCategorical(info) ? info.categories[flip.value] : shownNumber(model, row, flip);
  if (old === null) return `were ${shown} instead of missing`;
  if (isCategorical(info)) return `were ${shown} instead of ${info.categories[old]}`;
  const verb = flip.value > old ? "rose" : "fell";
  return `${verb} from ${oldInWords(old, flip.value, shown)} to ${shown}`;
}

/** The row's number, in as few digits as keep it on its side of the number shown. */
function oldInWords(from, to, shown) {
  for (let digits = FEW_DIGITS; digits < ALL_DIGITS; digits += 1) {
    const text = rounded(from, digits);
    if (to > from ? Number(shown) > Number(text) : Number(shown) < Number(text)) return text;
  }
  return exact(from);
}

const outcomeOf = (leaf) => leaf.predicted ?? leaf.value[0];

function changed(row, feature, value) {
  return row.with(feature, value);
}

// --- values to try ---

function changes(model, feature, row) {
  if (!isCategorical(model.features[feature])) return changesOfNumber(model, feature, row);
  return differentCategories(model, feature)
    .filter((code) => code !== row[feature])
    .map((value) => ({ value, size: 1 }));
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
  const isWhole = model.features[feature].whole && (own === null || own === Math.floor(own));
  const edges = cellEdges(model, feature, row);
  return [...edges, Infinity].flatMap((high, i) => {
    const low = i === 0 ? -Infinity : edges[i - 1];
    if (own !== null && low < own && own <= high) return [];
    const value = nearest(own, low, high, isWhole);
    return value === null ? [] : [{ value, size: changeSize(model.features[feature], own, value) }];
  });
}

/** Size of a change in standard deviations; 1 for a value instead of a missing one. */
function changeSize(info, own, value) {
  if (own === null) return 1;
  const finite = Math.min(Math.max(own, -Number.MAX_VALUE), Number.MAX_VALUE);
  return Math.abs(value - finite) / info.scale;
}

/** The nearest value above `low` and at most `high`; null if there is none. */
function nearest(own, low, high, isWhole) {
  if (own === null && low === -Infinity && high === Infinity) return 0;
  const goesUp = own === null ? high === Infinity : own <= low;
  const least = isWhole ? nextWhole(low) : nextAbove(low);
  const value = goesUp ? least : isWhole ? Math.floor(high) : high;
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

/** A value, in as few digits as can be, that leads to the same leaf and goes hardly farther. */
function shownNumber(model, row, { feature, value, leaf }) {
  const texts = beyond(value, row[feature] ?? NaN);
  const isSame = (text) => leafOf(model, changed(row, feature, Number(text))) === leaf;
  return texts.find(isSame) ?? texts.at(-1);
}
