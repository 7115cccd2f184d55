/** What leads to a branch, in few words, for cards, tables and tooltips. */

import { featureNames } from "./model.js";
import {
  countOf,
  DIGITS,
  interval,
  joinBounds,
  percent,
  readable,
  rounded,
  weightedSum,
} from "./words.js";

const MAX_CATEGORIES = 8;
const NO_BREAK = "\u00a0";

/** The values that go to one branch, for example "≤ 0.8 or missing". */
export function branchWords(model, node, branch) {
  const parts = (node.segments ?? node.regions)
    .filter((part) => part.branch === branch)
    .map((part) => partWords(model, node, part))
    .filter((words) => words !== "");
  if (node.sawMissing && node.missingBranch === branch) parts.push("missing");
  return parts.join(" or ");
}

/** The same, or only the number of regions, if there is no room for more. */
export function shortBranchWords(model, node, branch, fits) {
  const words = branchWords(model, node, branch) || "no values";
  if (!node.regions || fits(words)) return words;
  const parts = node.regions.filter((region) => region.branch === branch).length;
  const more = node.sawMissing && node.missingBranch === branch ? " or missing" : "";
  return `${countOf(parts, "region")}${more}`;
}

/** A segment or a region of a shape function; segments exactly, if that is asked for. */
export function partWords(model, node, part, isExact = false) {
  if (part.bounds) return part.bounds.map((bound) => boundWords(model, node, bound)).join(" and ");
  const feature = model.features[node.features[0]];
  if (part.codes) return categoryWords(feature, part.codes);
  return rangeWords(part, feature.whole, isExact).replace(/^in /, "");
}

function boundWords(model, node, bound) {
  const side = bound.weights[0] ? 0 : 1;
  const names = featureNames(model, node);
  const feature = model.features[node.features[side]];
  if (bound.codes) return `${names[side]} in ${categoryWords(feature, bound.codes)}`;
  const weights = bound.weights.map((weight) => rounded(weight, DIGITS));
  const isWhole = bound.weights.includes(0) && feature.whole;
  return `${weightedSum(weights, names)} ${rangeWords(bound, isWhole, false)}`;
}

function rangeWords({ low, high }, isWhole, isExact) {
  const [from, to] = [low, high].map(readable);
  if (isExact || isWhole || from === to) return interval("", low, high, isWhole).trim();
  const lower = low === -Infinity ? null : [">", from];
  return joinBounds("", lower, high === Infinity ? null : ["≤", to]).trim();
}

function categoryWords(feature, codes) {
  const shown = codes.slice(0, MAX_CATEGORIES).map((code) => feature.categories[code]);
  const more = codes.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}

/** What a node predicts, for example "setosa (98 %)" or "12.5 ± 3". */
export function predictionWords(model, node, shortened = (name) => name) {
  if (model.classes) {
    const share = ` (${percent(Math.max(...node.value)).replace(" ", NO_BREAK)})`;
    return `${shortened(model.classes[node.predicted], share)}${share}`;
  }
  const spread = node.deviation === null ? "" : ` ± ${rounded(node.deviation, 3)}`;
  return `${rounded(node.value[0])}${spread}`;
}

/** A node for those who cannot see it. */
export function nodeLabel(model, node) {
  const rows = countOf(node.rows, "row");
  const way = node.parent === null ? "" : `${wayWords(model, node)}: `;
  if (node.isLeaf) return `${way}leaf, predicts ${predictionWords(model, node)}, ${rows}`;
  const branches = `${node.children.length} branches`;
  return `${way}splits on ${featureNames(model, node).join(" and ")}, ${branches}, ${rows}`;
}

function wayWords(model, node) {
  const parent = model.nodes[node.parent];
  const words = branchWords(model, parent, node.branch);
  return parent.regions ? words : `${featureNames(model, parent)[0]} ${words}`;
}
