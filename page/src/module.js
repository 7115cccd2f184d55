/**
 * What an exported module predicts with: the router of the page, without the page.
 *
 * The build makes functions of this, `readTree` and `readForest`; `export_js` adds trees and
 * exports.
 */

import { readModel } from "./model.js";
import { pathOf, readRow } from "./predict.js";

/**
 * Functions of a tree. `data` has its features and nodes as the page has them, except that nodes
 * have the values of all targets; `classes` has the labels of each target, or is null.
 */
export function readTree({ classes, features, nodes }) {
  const model = readModel({ features: features.map(withCategories), nodes });
  const pathTo = (row) => pathOf(model, readRow(model, row));
  const valuesOf = (row) => pathTo(row).at(-1).value;
  const leaf = (row) => pathTo(row).at(-1).number;
  const reasons = (row) => [
    ...new Set(pathTo(row).flatMap((node) => node.features.map((j) => model.features[j].name))),
  ];
  return { leaf, reasons, ...predictors(classes, valuesOf) };
}

/** Functions of a forest, whose `trees` are lists of nodes; it predicts means of their values. */
export function readForest({ classes, features, trees }) {
  const known = features.map(withCategories);
  const models = trees.map((nodes) => readModel({ features: known, nodes }));
  const leavesOf = (row) => {
    const read = readRow(models[0], row);
    return models.map((model) => pathOf(model, read).at(-1));
  };
  const meansOf = (row) => {
    const values = leavesOf(row).map((leaf) => leaf.value);
    const meanOf = (output, i) =>
      values.reduce((sum, value) => sum + value[output][i], 0) / values.length;
    return values[0].map((its, output) => its.map((_, i) => meanOf(output, i)));
  };
  const leaves = (row) => leavesOf(row).map((leaf) => leaf.number);
  return { leaves, ...predictors(classes, meansOf) };
}

/** Functions that predict by the values of a row, those of each target. */
function predictors(classes, valuesOf) {
  if (classes === null) {
    return { predict: (row) => alone(valuesOf(row).map(([number]) => number)) };
  }
  return {
    predict: (row) => alone(valuesOf(row).map((shares, i) => classes[i][likeliest(shares)])),
    predictProba: (row) => alone(valuesOf(row).map((shares) => [...shares])),
  };
}

/** What the page calls a category is not read here. */
function withCategories(feature) {
  return feature.values ? { ...feature, categories: feature.values } : feature;
}

function likeliest(shares) {
  return shares.reduce((best, share, i) => (share > shares[best] ? i : best), 0);
}

/** A target's outcome, or those of several. */
function alone(outcomes) {
  return outcomes.length === 1 ? outcomes[0] : outcomes;
}
