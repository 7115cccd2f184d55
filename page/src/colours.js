/**
 * Colours that colour-blind people can tell apart: strong ones (Okabe and Ito's) for branches, muted
 * ones (Paul Tol's) for classes, in an order that keeps the first classes' hues away from the first
 * branches', so that the two are not confused.
 */

const BRANCHES = [
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#cc79a7",
  "#e69f00",
  "#56b4e9",
  "#8a6d3b",
  "#7f7f7f",
];
const CLASSES = [
  "#ddcc77",
  "#aa4499",
  "#88ccee",
  "#999933",
  "#882255",
  "#44aa99",
  "#cc6677",
  "#6655bb",
  "#117733",
];
// From low to high targets: the cividis scale, roughly.
const TARGETS = ["#00224e", "#3b496c", "#6c6d72", "#a69d75", "#e2cb5c", "#fee838"];
// How later rounds through a palette differ from the first: towards black or white.
const SHADES = [0, -0.3, 0.35, -0.5, 0.55, -0.15, 0.18, -0.4, 0.45, -0.22, 0.27, -0.08];

export const branchColour = (branch) => repeated(BRANCHES, branch);
export const classColour = (number) => repeated(CLASSES, number);

/** Colour of a target, given its place from 0 to 1. */
export function targetColour(place) {
  const scaled = Math.min(Math.max(place, 0), 1) * (TARGETS.length - 1);
  const start = Math.min(Math.floor(scaled), TARGETS.length - 2);
  return mixed(TARGETS[start], TARGETS[start + 1], scaled - start);
}

function repeated(palette, number) {
  const shade = SHADES[Math.floor(number / palette.length) % SHADES.length];
  return mixed(
    palette[number % palette.length],
    shade < 0 ? "#000000" : "#ffffff",
    Math.abs(shade),
  );
}

function mixed(one, other, share) {
  const [from, to] = [channels(one), channels(other)];
  const mix = from.map((value, i) => Math.round(value + share * (to[i] - value)));
  return `#${mix.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

function channels(colour) {
  return [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16));
}
