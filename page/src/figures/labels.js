/** Labels along an axis: where they stand, so that none touches another. */

import { textWidth } from "../dom.js";

const GAP = 6;
// Shift of a label beside its tick that is hardly seen.
const SLIGHT = 3;
const SWATCH = 7;

/** Centres of labels nearest to the wanted ones, or null if there is too little room for all. */
export function spread(wanted, widths, low, high) {
  const total = widths.reduce((sum, width) => sum + width, 0) + GAP * (widths.length - 1);
  if (total > high - low) return null;
  // Without the room that the labels before it need, each may be where the last one is.
  const before = [0];
  for (let i = 1; i < widths.length; i += 1) {
    before.push(before[i - 1] + (widths[i - 1] + widths[i]) / 2 + GAP);
  }
  const blocks = [];
  wanted.forEach((place, i) => {
    let block = { mean: place - before[i], size: 1 };
    while (blocks.length && blocks.at(-1).mean > block.mean) {
      const { mean, size } = blocks.pop();
      const joined = size + block.size;
      block = { mean: (block.mean * block.size + mean * size) / joined, size: joined };
    }
    blocks.push(block);
  });
  const free = blocks.flatMap(({ mean, size }) => Array(size).fill(mean));
  const [least, most] = [low + widths[0] / 2, high - widths.at(-1) / 2 - before.at(-1)];
  return free.map((x, i) => Math.min(Math.max(x, least), most) + before[i]);
}

/**
 * How the thresholds of a node are written below its strip: with lines to their labels, or, if
 * these are too many, as a list of all branches and of the thresholds between them.
 */
export function layOutThresholds(node, width, size) {
  const { thresholds } = node.density;
  if (thresholds.length === 0) return { centres: [], leader: 0, height: 2 };
  const widths = thresholds.map(([, label]) => textWidth(label, size.font));
  const wanted = thresholds.map(([place]) => place * width);
  const centres = spread(wanted, widths, -4, width + 4);
  if (centres) {
    const shift = Math.max(...centres.map((centre, i) => Math.abs(centre - wanted[i])));
    const leader = shift < SLIGHT ? 4 : Math.min(6 + shift / 8, 18);
    return { centres, leader, height: leader + size.font + 5 };
  }
  // The panel has a table of all segments.
  if (size.isLarge) return { lines: [], height: 2 };
  const lines = linesOfList(node, widths, width, size);
  return { lines, height: lines.length * lineHeight(size) + 6 };
}

export const lineHeight = (size) => size.font + 3;

function linesOfList(node, widths, room, size) {
  const lines = [[]];
  let x = 0;
  node.segments.forEach(({ branch }, i) => {
    const label = node.density.thresholds[i]?.[1] ?? "";
    const need = SWATCH + 3 + (widths[i] ?? 0) + GAP;
    if (x + need > room && lines.at(-1).length) {
      lines.push([]);
      x = 0;
    }
    lines.at(-1).push({ x, branch, label, labelX: x + SWATCH + 3, width: SWATCH });
    x += need;
  });
  if (lines.length <= size.listLines) return lines;
  const kept = lines.slice(0, size.listLines - 1);
  const left = widths.length - kept.flat().length;
  return [...kept, [{ x: 0, branch: null, label: `and ${left} more: open the node`, labelX: 0 }]];
}

/** Labels that have room beside those before them, each as {x, centre, text}. */
export function withoutCollisions(labels, width, font) {
  const taken = [];
  return labels.flatMap(([place, text]) => {
    const [x, half] = [place * width, textWidth(text, font) / 2];
    const centre = Math.min(Math.max(x, half - 4), width + 4 - half);
    const isFree = taken.every(
      ([low, high]) => centre + half + GAP <= low || centre - half - GAP >= high,
    );
    if (!isFree) return [];
    taken.push([centre - half, centre + half]);
    return [{ x, centre, text }];
  });
}
