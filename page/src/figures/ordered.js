/** The shape function of an ordered feature: bars of rows above a strip coloured by branch. */

import { svg, textWidth } from "../dom.js";
import { isMissing } from "../predict.js";
import {
  addCounts,
  axisWidth,
  classCounts,
  drawBars,
  drawPart,
  joinMeans,
  missingCentre,
  missingCounts,
  partLines,
  round,
  showsMissing,
} from "./bars.js";

const LABEL_GAP = 5;
// How far a label may be from its tick.
const LABEL_SHIFT = 14;

export function drawOrdered(model, node, size) {
  const width = axisWidth(node, size);
  const cells = cellsOf(node, width);
  const columns = cells.map((cell, i) => ({ ...cell, counts: classCounts(model, node, i) }));
  const hasMissing = showsMissing(node);
  if (hasMissing) columns.push(missingColumn(node, size));
  return svg(
    "g",
    {},
    [
      ...drawBars(model, columns, size.bars),
      model.classes ? null : drawMeans(node, cells, size),
      ...drawTicks(node, width, size),
      ...orderedParts(model, node).map((part) => {
        const [x, end] = [cells[part.cells[0]].x, cells[part.cells.at(-1)]];
        return drawPart(
          node,
          { x, width: end.x + end.width - x - 1, branch: part.branch },
          size,
          part.lines,
        );
      }),
      hasMissing ? drawMissing(model, node, size) : null,
    ].filter((child) => child !== null),
  );
}

/** The segments with their cells, rows and words. */
export function orderedParts(model, node) {
  let cell = 0;
  return node.segments.map((segment, i) => {
    const cells = [];
    const end = i === node.segments.length - 1 ? Infinity : segmentEnd(node, segment);
    while (cell < node.density.counts.length && (end === Infinity || cell < end))
      cells.push(cell++);
    const counts = addCounts(cells.map((at) => classCounts(model, node, at)));
    const { words } = segment;
    const mean = joinMeans(node, cells);
    const lines = partLines(model, node, words, segment.branch, counts, mean);
    return { branch: segment.branch, cells, counts, words, lines, mean };
  });
}

/** Number of the cell after a segment. Edges are rounded, so take the one nearest the threshold. */
function segmentEnd(node, segment) {
  const gaps = node.density.edges.map((edge) => Math.abs(edge - segment.high));
  return gaps.indexOf(Math.min(...gaps.slice(1, -1)), 1);
}

export function drawMissing(model, node, size) {
  const counts = missingCounts(node);
  const lines = partLines(model, node, "missing", node.missingBranch, counts, null);
  const x = size.width - size.missing;
  const part = { x, width: size.missing, branch: node.missingBranch, isMissing: true };
  return drawPart(node, part, size, lines);
}

export function missingColumn(node, size) {
  const counts = missingCounts(node);
  return { x: size.width - size.missing, width: size.missing, counts };
}

/** Where a row's value lies on the strip. */
export function markValue(node, row, size) {
  const y = size.bars + 2;
  if (isMissing(node, row)) return showsMissing(node) ? { x: missingCentre(size), y } : null;
  const { edges, positions } = node.density;
  const value = row[node.features[0]];
  const last = edges.length - 1;
  const cell = Math.min(
    Math.max(
      edges.findIndex((edge) => value <= edge),
      1,
    ),
    last,
  );
  const at = value > edges[last] ? last : cell;
  const share = (value - edges[at - 1]) / (edges[at] - edges[at - 1]);
  const place =
    positions[at - 1] + Math.min(Math.max(share, 0), 1) * (positions[at] - positions[at - 1]);
  return { x: place * axisWidth(node, size), y };
}

function cellsOf(node, width) {
  const { positions } = node.density;
  return positions.slice(1).map((end, i) => ({
    x: positions[i] * width,
    width: Math.max((end - positions[i]) * width, 0.2),
  }));
}

/** The mean target of each cell that has rows; dots are smaller where fewer rows tell it. */
function drawMeans(node, cells, size) {
  const known = node.density.means.flatMap((mean, i) => (mean === null ? [] : [[i, mean]]));
  const values = known.map(([, mean]) => mean);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const points = known.map(([i, mean]) => {
    const share = high > low ? (mean - low) / (high - low) : 0.5;
    return [round(cells[i].x + cells[i].width / 2), round(size.bars - 4 - share * (size.bars - 8))];
  });
  const most = Math.max(...node.density.counts, 1);
  const dots = points.map(([cx, cy], at) => {
    const share = Math.sqrt(node.density.counts[known[at][0]] / most);
    return svg("circle", { cx, cy, r: round(size.dot * (0.35 + 0.65 * share)) });
  });
  const line = svg("polyline", { points: points.map((point) => point.join(",")).join(" ") });
  return svg("g", { class: "means" }, [line, ...dots]);
}

/** Thresholds below the strip; where they would run into each other, put aside, lower or left out. */
function drawTicks(node, width, size) {
  const { positions } = node.density;
  const ends = size.isLarge ? [-Infinity, -Infinity] : [-Infinity];
  const top = size.bars + size.strip;
  const thresholds = node.segments.slice(0, -1);
  return thresholds.flatMap((segment) => {
    const x = positions[segmentEnd(node, segment)] * width - 0.5;
    const text = segment.upper[1];
    const half = textWidth(text, size.font) / 2;
    const line = ends.findIndex((end) => x - half > end + LABEL_GAP - LABEL_SHIFT);
    const tick = svg("line", { x1: round(x), x2: round(x), y1: top, y2: top + 3, class: "tick" });
    if (line < 0) return [tick];
    const least = ends[line] + LABEL_GAP + half;
    const middle = Math.max(Math.min(Math.max(x, half), width - half), least);
    ends[line] = middle + half;
    const y = top + 3 + size.font + line * (size.font + 3);
    const attributes = { x: round(middle), y, "font-size": size.font, "text-anchor": "middle" };
    return [tick, svg("text", { ...attributes, class: "muted number" }, text)];
  });
}
