/**
 * A visitor's own numbers in words, as `tree/_digits.py` says them; a test compares the two.
 *
 * What is known of a tree beforehand comes in words from Python.
 */

import { isWritten, READABLE_STEPS, readMoment, writeMoment } from "./dates.js";

/** Significant digits that a rounded number has, unless fewer say it all. */
export const DIGITS = 4;
/** A number of no more digits is written exactly. */
export const FEW_DIGITS = 6;
/** Digits that say every number exactly. */
export const ALL_DIGITS = 17;

/** The shortest decimal, or date, that reads back as the number. */
export function exact(number, date) {
  if (!Number.isFinite(number)) return notFinite(number);
  if (date && isWritten(number)) return writeMoment(number, date);
  return plain(parseDecimal(number.toExponential()));
}

/** The number that a decimal or a date says. */
export const read = (text, date) => (date ? readMoment(text) : Number(text));

/** The number to some significant digits, ties away from zero. */
export function rounded(number, digits = DIGITS) {
  if (!Number.isFinite(number)) return notFinite(number);
  return plain(parseDecimal(number.toExponential(digits - 1)));
}

/** The greatest decimal of some significant digits that is not above the number. */
const atMost = (number, digits) => towards(number, digits, -1n);

/** The least decimal of some significant digits that is not below the number. */
const atLeast = (number, digits) => towards(number, digits, 1n);

/**
 * Ways to write a number that something must reach from its origin, the shortest first.
 *
 * Each is the number itself or a little farther, never by more than a fiftieth of the way. If
 * there is no origin (NaN), four digits are enough. The last way is exact. A date has more and more
 * of a day's time instead of digits.
 */
export function beyond(number, origin, date) {
  const written = exact(number, date);
  const way = Math.abs(number / 50 - origin / 50);
  if (date) {
    const round = number > origin ? Math.ceil : Math.floor;
    const moments = READABLE_STEPS.map((step) => step * round(number / step));
    const near = moments.filter((moment) => !(Math.abs(moment - number) > way));
    return [...new Set([...near.map((moment) => exact(moment, date)), written])];
  }
  if (!Number.isFinite(number) || countDigits(written) <= FEW_DIGITS) return [written];
  const toSide = number > origin ? atLeast : atMost;
  const texts = [];
  for (let digits = Number.isNaN(way) ? DIGITS : 1; digits < ALL_DIGITS; digits += 1) {
    const text = toSide(number, digits);
    if (!(Math.abs(Number(text) - number) > way)) texts.push(text);
  }
  return [...new Set([...texts, written])];
}

/** Significant digits of a number in words, zeros at its end not counted. */
export function countDigits(text) {
  const mantissa = text.replace(/^-/, "").split("e")[0];
  return mantissa.replace(".", "").replace(/^0+|0+$/g, "").length;
}

/** A share in whole percent; 0 and 100 only for nothing and all, else with the digits it takes. */
export function percent(share) {
  if (share <= 0 || share >= 1) return share <= 0 ? "0 %" : "100 %";
  const whole = Math.floor(100 * share + 0.5);
  if (whole === 0) return `${rounded(100 * share, 1)} %`;
  if (whole < 100) return `${whole} %`;
  const rest = Number(rounded(100 * (1 - share), 1));
  return `${(100 - rest).toFixed(Math.ceil(-Math.log10(rest)))} %`;
}

/** A count of things, with commas between thousands. */
export function countOf(number, thing) {
  return `${number.toLocaleString("en-US")} ${number === 1 ? thing : `${thing}s`}`;
}

/** Words as a list. */
export function listing(words) {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** One or two bounds of a quantity. */
export function joinBounds(name, lower, upper) {
  if (lower === null || upper === null) {
    const bound = lower ?? upper;
    return bound === null ? `${name} is known` : `${name} ${bound[0]} ${bound[1]}`;
  }
  const start = lower[0] === ">" ? "(" : "[";
  const end = upper[0] === "<" ? ")" : "]";
  return `${name} in ${start}${lower[1]}, ${upper[1]}${end}`;
}

const memory = new DataView(new ArrayBuffer(8));

/** The numbers in order as whole numbers: neighbours differ by one. */
export function orderOf(number) {
  memory.setFloat64(0, number);
  const bits = memory.getBigInt64(0);
  return bits < 0n ? -(bits & 0x7fffffffffffffffn) : bits;
}

/** The number at a place in the order of all numbers. */
export function numberAt(order) {
  memory.setBigInt64(0, order < 0n ? -order : order);
  const size = memory.getFloat64(0);
  return order < 0n ? -size : size;
}

/** The next greater number. */
export function nextAbove(number) {
  return number === Infinity ? number : numberAt(orderOf(number) + 1n);
}

/** The next smaller number. */
export function nextBelow(number) {
  return number === -Infinity ? number : numberAt(orderOf(number) - 1n);
}

/** The least multiple of a step above a number, among the numbers that there are. */
export function nextMultiple(number, step) {
  return Math.max(step * (Math.floor(number / step) + 1), nextAbove(number));
}

function notFinite(number) {
  if (Number.isNaN(number)) return "nan";
  return number > 0 ? "inf" : "-inf";
}

/** The number to some digits, rounded to one side. */
function towards(number, digits, side) {
  if (number === 0 || !Number.isFinite(number)) return exact(number);
  const decimal = parseDecimal(number.toExponential(digits - 1));
  const step = exponentOf(number) - digits + 1;
  const text = plain(decimal);
  const excess = Number(text) - number;
  const isBeyond = side > 0n ? excess < 0 : excess > 0;
  return isBeyond ? plain(moveBy(decimal, side, step)) : text;
}

/** A decimal as a whole number times a power of ten. */
function parseDecimal(text) {
  const [mantissa, exponent] = text.split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  return { figures: BigInt(whole + fraction), power: Number(exponent) - fraction.length };
}

/** Power of ten of the first digit; to 100 digits, so that it is not rounded up. */
function exponentOf(number) {
  return Number(number.toExponential(100).split("e")[1]);
}

function moveBy({ figures, power }, side, step) {
  const scale = 10n ** BigInt(Math.max(0, power - step));
  const finer = 10n ** BigInt(Math.max(0, step - power));
  return { figures: figures * scale + side * finer, power: Math.min(power, step) };
}

/** A decimal without needless zeros, in powers of ten only where it would be long. */
function plain({ figures, power }) {
  if (figures === 0n) return "0";
  const minus = figures < 0n ? "-" : "";
  const all = String(figures < 0n ? -figures : figures);
  const digits = all.replace(/0+$/, "");
  const point = all.length + power; // where the decimal point is, counted from the left
  if (point < -4 || point > 16) {
    const rest = digits.length > 1 ? `.${digits.slice(1)}` : "";
    return `${minus}${digits[0]}${rest}e${point - 1}`;
  }
  if (point <= 0) return `${minus}0.${"0".repeat(-point)}${digits}`;
  if (point >= digits.length) return `${minus}${digits}${"0".repeat(point - digits.length)}`;
  return `${minus}${digits.slice(0, point)}.${digits.slice(point)}`;
}
