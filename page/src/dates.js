/**
 * Moments in time, which are seconds since 1970-01-01, in words and in inputs, as
 * `data/_moments.py` writes and reads them; a test compares the two.
 */

export const DAY = 86_400;
/** What moments are rounded to where fewer digits will do, the coarsest first. */
export const READABLE_STEPS = [DAY, 3_600, 60, 1];
/** Moments of the years 1 to 9999; others stay numbers. */
const FIRST = -62_135_596_800;
const LAST = 253_402_300_800;
const TEXT = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(?::(\d\d)(\.\d+)?)?)?(?: UTC)?$/;

/** Whether a moment has words; `kind` is that of the feature. */
export const isWritten = (seconds) => FIRST <= seconds && seconds < LAST;

/** The day, and the time of day with as many digits as it takes. */
export function writeMoment(seconds, kind) {
  const text = partsOf(seconds).join(" ");
  return kind === "utc" ? `${text} UTC` : text;
}

/** The number of a text that `writeMoment` or an input for dates has made; NaN for others. */
export function readMoment(text) {
  const found = TEXT.exec(text);
  if (found === null) return text === "" ? NaN : Number(text);
  const [, day, minute = "00:00", second = "00", rest = ""] = found;
  const whole = Date.parse(`${day}T${minute}:${second}Z`) / 1000;
  // The fraction of a negative number counts upwards, too.
  return rest === "" ? whole : whole < 0 ? whole + Number(rest) : Number(`${whole}${rest}`);
}

/** What an input for dates, or for dates and times, holds. */
export const inputValue = (seconds, kind) =>
  kind === "day"
    ? partsOf(seconds)[0]
    : new Date(Math.floor(seconds) * 1000).toISOString().slice(0, 19);

/** A moment near another, as coarse as a range makes sense of: whole days, minutes or seconds. */
export function nearMoment(seconds, span, kind) {
  const step = kind === "day" ? DAY : span > 2 * DAY ? 3_600 : span > 3_600 ? 60 : 1;
  return Math.round(seconds / step) * step;
}

function partsOf(seconds) {
  const whole = Math.floor(seconds);
  const [day, time] = new Date(whole * 1000).toISOString().slice(0, 19).split("T");
  const fraction = fractionOf(seconds);
  if (fraction !== "") return [day, `${time}.${fraction}`];
  if (!time.endsWith(":00")) return [day, time];
  return time === "00:00:00" ? [day] : [day, time.slice(0, 5)];
}

/** Decimals of the shortest number that reads back the same, counted upwards. */
function fractionOf(seconds) {
  const [mantissa, exponent] = seconds.toExponential().split("e");
  const decimals = (mantissa.split(".")[1] ?? "").length - Number(exponent);
  if (decimals <= 0) return "";
  const unit = 10n ** BigInt(decimals);
  const figures = BigInt(mantissa.replace(".", "")) % unit;
  return String((figures + unit) % unit)
    .padStart(decimals, "0")
    .replace(/0+$/, "");
}
