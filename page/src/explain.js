/** Why a row is predicted what it is, and what would change that, in the library's own sentences. */

import { findFlip, flipInWords } from "./flip.js";
import { pathOf } from "./predict.js";
import { conditionsOf, merge, wordsOf } from "./reasons.js";
import { countDigits, exact, listing, rounded } from "./words.js";

// Digits that numbers of notes have at most.
const MOST_DIGITS = 9;

/**
 * The sentence of a row, that of its flip or null, and what is unlike training in it.
 *
 * `newValues` holds categories that training has not seen by feature; a flip leaves features alone
 * that `mayChange` refuses.
 */
export function explainRow(model, row, { newValues = new Map(), mayChange } = {}) {
  const path = pathOf(model, row);
  const conditions = merge(path.slice(0, -1).flatMap((node) => conditionsOf(node, row)));
  const words = path.at(-1).trained;
  const outcome = model.target === null ? words : `${model.target}: ${words}`;
  const reasons = conditions.map((condition) => wordsOf(model, condition));
  const sentence = reasons.length
    ? `Predicted ${outcome} because ${listing(reasons)}`
    : [
        `Predicted ${outcome} for every row`,
        ...(model.whySingleLeaf ? [model.whySingleLeaf] : []),
      ].join(". ");
  const notes = notesOf(model, row, conditions, newValues);
  return { sentence, flip: flipSentence(model, row, mayChange), notes };
}

function flipSentence(model, row, mayChange) {
  const flip = findFlip(model, row, mayChange);
  if (flip === null) return null;
  const words = listing(flipInWords(model, row, flip));
  return `It would be ${flip.leaf.flipped} if ${words}`;
}

/** What is unlike training in the values that decide. */
function notesOf(model, row, conditions, newValues) {
  const features = [...new Set(conditions.flatMap((condition) => condition.features))];
  return features.flatMap((feature) => {
    const { name } = model.features[feature];
    if (newValues.has(feature)) {
      return [`${name} = ${newValues.get(feature)} was never seen in training`];
    }
    const beyond = beyondWords(model, feature, row[feature]);
    return beyond === null ? [] : [`${name} = ${beyond}`];
  });
}

/** Says that a number is outside the range seen in training; null if it is not. */
export function beyondWords(model, feature, value) {
  const { range, date } = model.features[feature];
  if (!range || value === null) return null;
  const low = range[0] ?? -Infinity;
  const high = range[1] ?? Infinity;
  if (low <= value && value <= high) return null;
  const texts = [value, low, high].map((number) => {
    const written = exact(number, date);
    return !date && countDigits(written) > MOST_DIGITS ? rounded(number, MOST_DIGITS) : written;
  });
  return `${texts[0]} is outside the range ${texts[1]} to ${texts[2]} seen in training`;
}
