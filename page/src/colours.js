/** The colours of branches, classes and targets, which Python chooses for all pictures. */

let palette = { branches: [], classes: [], numbers: [] };

export function useColours(colours) {
  palette = colours;
}

export const branchColour = (branch) => palette.branches[branch];
export const classColour = (number) => palette.classes[number];

/** Colour of a target, given its place from 0 to 1. */
export function targetColour(place) {
  const { numbers } = palette;
  const scaled = Math.min(Math.max(place, 0), 1) * (numbers.length - 1);
  const start = Math.min(Math.floor(scaled), numbers.length - 2);
  return mixed(numbers[start], numbers[start + 1], scaled - start);
}

/** All colours from the least to the greatest target, for a legend. */
export const targetGradient = () => `linear-gradient(to right, ${palette.numbers.join(", ")})`;

function mixed(one, other, share) {
  const [from, to] = [channels(one), channels(other)];
  const mix = from.map((value, i) => Math.round(value + share * (to[i] - value)));
  return `#${mix.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

function channels(colour) {
  return [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16));
}
