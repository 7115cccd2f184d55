/**
 * What an exported module predicts with: the router of the page, without the page.
 *
 * The build makes one function of this, `readTree`; `export_js` adds a tree and exports.
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
  if (classes === null) {
    return { leaf, reasons, predict: (row) => alone(valuesOf(row).map(([number]) => number)) };
  }
  return {
    leaf,
    reasons,
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
