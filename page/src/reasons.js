/** The conditions that a row satisfies, in words that stay true, as `explain/_conditions.py` says. */

import { isCategorical } from "./model.js";
import { inRegion, isMissing, partOf } from "./predict.js";
import { joinBounds } from "./words.js";

// Categories that are named before the rest is only counted.
const MAX_CATEGORIES = 12;

/** What a row satisfies in a node: that it lacks a value, or the part that it lies in. */
export function conditionsOf(node, row) {
  if (isMissing(node, row)) return missingConditions(node, row);
  if (node.segments) return [{ ...ANY, ...partOf(node, row), features: node.features }];
  const { bounds } = node.joined.find((joined) => inRegion(node, joined, row));
  // A region without bounds has all points that are known.
  if (!bounds.length) return node.features.map((feature) => ({ ...ANY, features: [feature] }));
  return bounds.map((bound) => boundCondition(node, bound));
}

/** One condition for each feature or weighted sum, in order of their first appearance. */
export function merge(conditions) {
  const merged = new Map();
  for (const condition of conditions) {
    const key = JSON.stringify([condition.features, condition.weights]);
    merged.set(key, merged.has(key) ? both(merged.get(key), condition) : condition);
  }
  return [...merged.values()];
}

/** The condition in words. */
export function wordsOf(model, condition) {
  const feature = model.features[condition.features[0]];
  if (condition.isMissing)
    return `${feature.name} is missing${isCategorical(feature) ? " or new" : ""}`;
  if (condition.codes) return categoriesInWords(feature, condition.codes);
  return joinBounds(condition.quantity ?? feature.name, condition.lower, condition.upper);
}

// Bounds are numbers to compare, and signs with numbers in words.
const ANY = {
  weights: [1],
  low: -Infinity,
  high: Infinity,
  lower: null,
  upper: null,
  codes: null,
  isMissing: false,
};

function missingConditions(node, row) {
  const lacking = node.features
    .filter((feature) => row[feature] === null)
    .map((feature) => ({ ...ANY, features: [feature], isMissing: true }));
  const odd = node.features.flatMap((feature, side) => {
    const codes = node.missingCodes?.[side] ?? [];
    return codes.includes(row[feature]) ? [{ ...ANY, features: [feature], codes }] : [];
  });
  return [...lacking, ...odd];
}

function boundCondition(node, bound) {
  const [a, b] = bound.weights;
  if (a && b) return { ...ANY, ...bound, features: node.features };
  return { ...ANY, ...bound, weights: [1], features: [node.features[a ? 0 : 1]] };
}

/** Both conditions on the same features as one. */
function both(one, other) {
  if (one.isMissing) return one;
  if (other.isMissing) return other;
  const [above, below] = [other.low > one.low ? other : one, other.high < one.high ? other : one];
  return {
    ...one,
    low: above.low,
    lower: above.lower,
    high: below.high,
    upper: below.upper,
    codes:
      one.codes && other.codes ? one.codes.filter((code) => other.codes.includes(code)) : one.codes,
  };
}

/** Being one of some categories: these, or if they are too many to name, what else is not. */
function categoriesInWords(feature, codes) {
  const { name, categories } = feature;
  if (codes.length === 1) return `${name} = ${categories[codes[0]]}`;
  const others = [...categories.keys()].filter((code) => !codes.includes(code));
  if (!others.length) return `${name} is known`;
  if (codes.length <= MAX_CATEGORIES || codes.length <= others.length)
    return `${name} in ${braces(categories, codes)}`;
  if (others.length === 1) return `${name} is known but not ${categories[others[0]]}`;
  return `${name} is known but none of ${braces(categories, others)}`;
}

function braces(categories, codes) {
  const shown = codes
    .slice(0, MAX_CATEGORIES)
    .map((code) => categories[code])
    .join(", ");
  const more = codes.length - MAX_CATEGORIES;
  return `{${more > 0 ? `${shown} and ${more} more` : shown}}`;
}
