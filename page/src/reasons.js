/** The conditions that a row satisfies, in words that stay true, as `explain/_conditions.py` says. */

import { isCategorical } from "./model.js";
import { encloses, isMissing, partOf, weigh } from "./predict.js";
import {
  FEW_DIGITS,
  ALL_DIGITS,
  atLeast,
  atMost,
  countDigits,
  DIGITS,
  exact,
  interval,
  joinBounds,
  lowerBound,
  rounded,
  upperBound,
  weightedSum,
} from "./words.js";

// Categories that are named before the rest is only counted.
const MAX_CATEGORIES = 8;

/** What a row satisfies in a node: that it lacks a value, or the part that it lies in. */
export function conditionsOf(node, row) {
  if (isMissing(node, row)) return missingConditions(node, row);
  const part = partOf(node, row);
  if (part.bounds) return part.bounds.map((bound) => boundCondition(node, bound));
  return [
    { ...ANY, features: node.features, low: part.low, high: part.high, codes: part.codes ?? null },
  ];
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

/** The condition in words that the row satisfies, rounded to its inside. */
export function wordsFor(model, condition, row) {
  const feature = model.features[condition.features[0]];
  if (condition.isMissing)
    return `${feature.name} is missing${isCategorical(feature) ? " or new" : ""}`;
  if (condition.codes) return categoriesInWords(feature, condition.codes);
  const values = condition.features.map((number) => row[number]);
  if (values.length === 2) return sumInWords(model, condition, values);
  if (feature.whole && Number.isInteger(values[0])) {
    return interval(feature.name, condition.low, condition.high, true);
  }
  return joinBounds(feature.name, ...roundedBounds(condition, values[0]));
}

const ANY = { weights: [1], low: -Infinity, high: Infinity, codes: null, isMissing: false };

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
  const { low, high, codes = null } = bound;
  if (a && b) return { ...ANY, features: node.features, weights: bound.weights, low, high };
  const features = [node.features[a ? 0 : 1]];
  return codes ? { ...ANY, features, codes } : { ...ANY, features, low, high };
}

/** Both conditions on the same features as one. */
function both(one, other) {
  if (one.isMissing) return one;
  if (other.isMissing) return other;
  return {
    ...one,
    low: Math.max(one.low, other.low),
    high: Math.min(one.high, other.high),
    codes:
      one.codes && other.codes ? one.codes.filter((code) => other.codes.includes(code)) : one.codes,
  };
}

/** Being one of some categories, or none of the others if these are fewer. */
function categoriesInWords(feature, codes) {
  const { name, categories } = feature;
  if (codes.length === 1) return `${name} = ${categories[codes[0]]}`;
  const others = [...categories.keys()].filter((code) => !codes.includes(code));
  if (!others.length) return `${name} is known`;
  if (others.length === 1) return `${name} ≠ ${categories[others[0]]}`;
  if (others.length < codes.length) return `${name} not in ${braces(categories, others)}`;
  return `${name} in ${braces(categories, codes)}`;
}

function braces(categories, codes) {
  const shown = codes.slice(0, MAX_CATEGORIES).map((code) => categories[code]);
  const more = codes.length - shown.length;
  return `{${(more ? [...shown, `and ${more} more`] : shown).join(", ")}}`;
}

function sumInWords(model, condition, values) {
  const { digits, total } = weightDigits(condition, values);
  const weights = condition.weights.map((weight) =>
    digits === ALL_DIGITS ? exact(weight) : rounded(weight, digits),
  );
  const names = condition.features.map((number) => model.features[number].name);
  return joinBounds(weightedSum(weights, names), ...roundedBounds(condition, total));
}

/** Digits of the weights that keep a row's sum within the bounds, and that sum. */
function weightDigits(condition, values) {
  const { weights } = condition;
  for (let digits = DIGITS; digits < ALL_DIGITS; digits += 1) {
    const total = weigh(
      weights.map((weight) => Number(rounded(weight, digits))),
      values,
    );
    if (encloses(condition, total)) return { digits, total };
  }
  return { digits: ALL_DIGITS, total: weigh(weights, values) };
}

/** Bounds on either side of a number, each in as few digits as keep it inside. */
function roundedBounds({ low, high }, number) {
  const lower = lowerBound(low);
  const upper = upperBound(high);
  return [
    lower &&
      fewerDigits(
        lower,
        ">",
        (digits) => atLeast(low, digits),
        (text) => number > Number(text),
      ),
    upper &&
      fewerDigits(
        upper,
        "≤",
        (digits) => atMost(high, digits),
        (text) => number <= Number(text),
      ),
  ];
}

function fewerDigits(bound, sign, textOf, isInside) {
  if (countDigits(bound[1]) <= FEW_DIGITS) return bound;
  for (let digits = DIGITS; digits < ALL_DIGITS; digits += 1) {
    const text = textOf(digits);
    if (isInside(text)) return [sign, text];
  }
  return bound;
}
