/** Why a row is predicted what it is, and what would change that, in the library's own sentences. */

import { changeInWords, findFlip } from "./flip.js";
import { pathOf } from "./predict.js";
import { conditionsOf, merge, wordsFor } from "./reasons.js";
import { listing, percent, rounded } from "./words.js";

/** The sentence of a row, and that of its flip or null. */
export function explainRow(model, row) {
  const path = pathOf(model, row);
  const conditions = merge(path.slice(0, -1).flatMap((node) => conditionsOf(node, row)));
  const words = outcomeInWords(model, path.at(-1));
  const outcome = model.target === null ? words : `${model.target}: ${words}`;
  const reasons = conditions.map((condition) => wordsFor(model, condition, row));
  const sentence = reasons.length
    ? `Predicted ${outcome} because ${listing(reasons)}`
    : `Predicted ${outcome} for every row`;
  return { sentence, flip: flipInWords(model, row) };
}

function flipInWords(model, row) {
  const flip = findFlip(model, row);
  if (flip === null) return null;
  const { name } = model.features[flip.feature];
  const change = changeInWords(model, row, flip);
  return `It would be ${outcomeInWords(model, flip.leaf)} if ${name} ${change}`;
}

function outcomeInWords(model, leaf) {
  if (model.classes) {
    return `${model.classes[leaf.predicted]} (${percent(Math.max(...leaf.value))})`;
  }
  return `${rounded(leaf.value[0])} ± ${rounded(leaf.trainedDeviation)}`;
}
