/** What leads to a branch and what a node predicts, in few words, for cards, tables and tooltips. */

import { featureNames } from "./model.js";
import { countOf } from "./words.js";

const NO_BREAK = "\u00a0";

/** The values that go to one branch, for example "≤ 0.8 or missing". */
export const branchWords = (node, branch) => node.branchWords[branch];

/** The same, or only the number of regions, if there is no room for more. */
export function shortBranchWords(node, branch, fits) {
  const words = branchWords(node, branch);
  if (!node.regions || fits(words)) return words;
  const parts = node.joined.filter((region) => region.branch === branch).length;
  const more = node.sawMissing && node.missingBranch === branch ? " or missing" : "";
  return `${countOf(parts, "region")}${more}`;
}

/** What a node predicts, for example "setosa (98 %)" or "12.5 ± 3". */
export function predictionWords(model, node, isShort = false, shortened = (name) => name) {
  if (!model.classes) return node.outcome;
  const words = isShort ? node.shortShare : node.share;
  const share = ` (${words.replaceAll(" %", `${NO_BREAK}%`)})`;
  return `${shortened(model.classes[node.predicted], share)}${share}`;
}

/** How sure a node is: by its own rows, those that the tree was evaluated on, and resamples. */
export function sureWords(node) {
  const own = node.sure ? [`95 % interval: ${node.sure}`] : [];
  return [...own, ...[node.unseen, node.stability].filter(Boolean)];
}

/** What a branch leads to, and how many rows that is true of. */
export function childWords(model, node, branch) {
  const child = model.nodes[node.children[branch]];
  return `${predictionWords(model, child)}, ${countOf(child.rows, "row")}`;
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
  const words = branchWords(parent, node.branch);
  return parent.regions ? words : `${featureNames(model, parent)[0]} ${words}`;
}
