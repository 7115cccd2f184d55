/**
 * Routes rows through the tree exactly as the library does.
 *
 * A row is an array by feature: a number, a category's code, or null if it is missing or new.
 */

import { isCategorical } from "./model.js";

/** A row from its values by the features' names. */
export function readRow(model, named) {
  return model.features.map((feature) => {
    const value = named[feature.name] ?? null;
    if (isCategorical(feature)) return codeOf(feature, value);
    const isMoment = feature.date && value instanceof Date;
    return readNumber(isMoment ? value.getTime() / 1000 : value);
  });
}

/** Categories that training has not seen, by feature, of a row from which `row` was read. */
export function newCategories(model, named, row) {
  const isNew = (feature) =>
    isCategorical(model.features[feature]) &&
    row[feature] === null &&
    !isMissingValue(named[model.features[feature].name]);
  return new Map(model.used.filter(isNew).map((j) => [j, named[model.features[j].name]]));
}

const isMissingValue = (value) =>
  value === null || value === undefined || (typeof value === "number" && Number.isNaN(value));

/** The leaf that a row ends in. */
export function leafOf(model, row) {
  return pathOf(model, row).at(-1);
}

/** The nodes that a row passes, from the root to a leaf. */
export function pathOf(model, row) {
  const path = [model.nodes[0]];
  while (!path.at(-1).isLeaf) {
    const node = path.at(-1);
    path.push(model.nodes[node.children[branchOf(node, row)]]);
  }
  return path;
}

function branchOf(node, row) {
  return isMissing(node, row) ? node.missingBranch : partOf(node, row).branch;
}

/** Whether the node counts the row as one that lacks a feature. */
export function isMissing(node, row) {
  return node.features.some((feature, side) => {
    const value = row[feature];
    return value === null || (node.missingCodes?.[side].includes(value) ?? false);
  });
}

/** The segment or region that a row lies in, which has what the node asks for. */
export function partOf(node, row) {
  if (node.segments)
    return node.segments.find((segment) => inSegment(segment, row[node.features[0]]));
  return node.regions.find((region) => inRegion(node, region, row));
}

/** Whether a row that has both features lies in a region. */
export function inRegion(node, region, row) {
  const values = node.features.map((feature) => row[feature]);
  return region.bounds.every((bound) => inBound(bound, values));
}

function inSegment(segment, value) {
  return segment.codes ? segment.codes.includes(value) : value <= segment.high;
}

function inBound(bound, values) {
  if (bound.codes) return bound.codes.includes(values[bound.weights[0] ? 0 : 1]);
  return encloses(bound, weigh(bound.weights, values));
}

/** Whether a number is within bounds; any number is within infinite ones. */
function encloses({ low, high }, number) {
  return (low < number || low === -Infinity) && number <= high;
}

/** The weighted sum of a pair's values. */
export function weigh([a, b], [first, second]) {
  return a * clamped(first) + b * clamped(second);
}

function clamped(value) {
  return Math.min(Math.max(value, -Number.MAX_VALUE), Number.MAX_VALUE);
}

function readNumber(value) {
  if (value === null || value === "") return null;
  const number = Number(value);
  return Number.isNaN(number) ? null : number;
}

/** Code of a category; 1, 1.0 and true are the same, text is only itself. */
function codeOf(feature, value) {
  const code = feature.values.findIndex((known) =>
    typeof known === "string" || typeof value === "string"
      ? known === value
      : known !== null && value !== null && Number(known) === Number(value),
  );
  return code < 0 ? null : code;
}
