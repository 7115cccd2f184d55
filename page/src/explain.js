/** Why a row is predicted what it is, and what would change that, in the library's own sentences. */

import { changeInWords, findFlip } from "./flip.js";
import { pathOf } from "./predict.js";
import { conditionsOf, merge, wordsOf } from "./reasons.js";
import { listing } from "./words.js";

/** The sentence of a row, and that of its flip or null. */
export function explainRow(model, row) {
  const path = pathOf(model, row);
  const conditions = merge(path.slice(0, -1).flatMap((node) => conditionsOf(node, row)));
  const outcome = outcomeOf(path.at(-1));
  const reasons = conditions.map((condition) => wordsOf(model, condition));
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
  return `It would be ${outcomeOf(flip.leaf)} if ${name} ${change}`;
}

/** What a leaf predicts, and how its training rows are spread. */
const outcomeOf = (leaf) => leaf.trained ?? leaf.outcome;
