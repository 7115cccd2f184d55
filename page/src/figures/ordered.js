/** The shape function of an ordered feature: bars of rows above a strip coloured by branch. */

import { branchColour } from "../colours.js";
import { svg } from "../dom.js";
import { isMissing } from "../predict.js";
import { layOutThresholds, lineHeight, withoutCollisions } from "./labels.js";
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
  sum,
} from "./bars.js";

// Widths of segments that are seen, and of those that a gap parts from the next.
const [NARROWEST, WIDE] = [1, 6];
const NARROW_BAR = 2.6;

export function drawOrdered(model, node, size) {
  const width = axisWidth(node, size);
  const columns = columnsOf(model, node, width);
  const hasMissing = showsMissing(node);
  const bars = hasMissing ? [...columns, missingColumn(node, size)] : columns;
  return svg("g", {}, [
    ...drawBars(model, bars, size.bars),
    model.classes ? null : drawMeans(columns, size),
    ...drawThresholds(node, width, size),
    ...drawAxis(node, width, size),
    ...drawParts(model, node, width, size),
    ...drawBreaks(node, width, size),
    hasMissing ? drawMissing(model, node, size) : null,
  ]);
}

/** The segments in their order, each wide enough to be seen. */
function drawParts(model, node, width, size) {
  const ends = [...node.density.thresholds.map(([place]) => place * width), width];
  let x = 0;
  return orderedParts(model, node).map((part, i) => {
    const end = Math.max(ends[i], x + NARROWEST);
    const gap = end - x > WIDE ? 1 : 0;
    const box = { x, width: end - x - gap, branch: part.branch };
    x = end;
    return drawPart(node, box, size, part.lines);
  });
}

/** The segments with their cells, rows and words. */
export function orderedParts(model, node) {
  let cell = 0;
  return node.segments.map((segment, i) => {
    const cells = [];
    const end = node.density.thresholds[i]?.[2] ?? node.density.counts.length;
    while (cell < end) cells.push(cell++);
    const counts = addCounts(cells.map((at) => classCounts(model, node, at)));
    const { words } = segment;
    const mean = joinMeans(node, cells);
    const lines = partLines(model, node, words, segment.branch, counts, mean);
    return { branch: segment.branch, cells, counts, words, lines, mean };
  });
}

export function drawMissing(model, node, size) {
  const counts = missingCounts(node);
  const mean = node.density.missingMean ?? null;
  const lines = partLines(model, node, "missing", node.missingBranch, counts, mean);
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

/** Bars along the axis; cells too narrow to be seen are joined to their neighbours. */
function columnsOf(model, node, width) {
  const edges = node.density.positions.map((place) => place * width);
  if (node.density.isValues) return columnsOfValues(model, node, edges);
  const kept = [0];
  edges.slice(1, -1).forEach((x, i) => {
    if (Math.min(x - edges[kept.at(-1)], edges.at(-1) - x) >= NARROW_BAR) kept.push(i + 1);
  });
  kept.push(edges.length - 1);
  return kept.slice(1).map((end, i) => {
    const cells = Array.from({ length: end - kept[i] }, (_, at) => kept[i] + at);
    return {
      x: edges[kept[i]],
      width: Math.max(edges[end] - edges[kept[i]], 0.2),
      counts: addCounts(cells.map((cell) => classCounts(model, node, cell))),
      mean: joinMeans(node, cells),
    };
  });
}

/** A bar for each of a few whole numbers. */
function columnsOfValues(model, node, edges) {
  return node.density.counts.flatMap((_, cell) => {
    const counts = classCounts(model, node, cell);
    if (!counts.length) return [];
    const width = Math.max(edges[cell + 1] - edges[cell], 1);
    const x = (edges[cell] + edges[cell + 1] - width) / 2;
    return [{ x: x + 0.03 * width, width: 0.94 * width, counts, mean: joinMeans(node, [cell]) }];
  });
}

/** The mean target of each bar that has rows; dots are smaller where fewer rows tell it. */
function drawMeans(columns, size) {
  const known = columns.filter(({ mean }) => mean !== null);
  const values = known.map(({ mean }) => mean);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const rows = known.map(({ counts }) => sum(counts.map(([, count]) => count)));
  const points = known.map(({ x, width, mean }) => {
    const share = high > low ? (mean - low) / (high - low) : 0.5;
    return [round(x + width / 2), round(size.bars - 4 - share * (size.bars - 8))];
  });
  const most = Math.max(...rows, 1);
  const dots = points.map(([cx, cy], at) => {
    const share = Math.sqrt(rows[at] / most);
    return svg("circle", { cx, cy, r: round(size.dot * (0.35 + 0.65 * share)) });
  });
  const line = svg("polyline", { points: points.map((point) => point.join(",")).join(" ") });
  return svg("g", { class: "means" }, [line, ...dots]);
}

/** Thresholds below the strip. */
function drawThresholds(node, width, size) {
  const top = size.bars + size.strip;
  const { centres, leader, lines } = layOutThresholds(node, width, size);
  if (lines)
    return lines.flatMap((line, i) => drawLine(line, top + 4 + i * lineHeight(size), size));
  return node.density.thresholds.flatMap(([place, text], i) => {
    const end = top + leader;
    const points = `${round(place * width)},${top} ${round(centres[i])},${round(end)}`;
    const attributes = { x: round(centres[i]), y: round(end + size.font), ...textStyle(size) };
    return [
      svg("polyline", { points, class: "tick" }),
      svg("text", { ...attributes, class: "number threshold" }, text),
    ];
  });
}

const textStyle = (size) => ({ "font-size": size.font, "text-anchor": "middle" });

/** A line of branches and of the thresholds between them. */
function drawLine(line, y, size) {
  return line.flatMap(({ x, branch, label, labelX, width }) => {
    const attributes = { x: round(labelX), y: round(y + size.font - 1), "font-size": size.font };
    const isRest = branch === null;
    const text = svg(
      "text",
      { ...attributes, class: isRest ? "muted" : "number threshold" },
      label,
    );
    if (isRest) return [text];
    const box = { x: round(x), y: round(y + 2.5), width, height: size.font - 4 };
    return [svg("rect", { ...box, rx: 1.5, fill: branchColour(branch) }), text];
  });
}

/** The axis: round numbers, and the least and the greatest of the rows, which never give way. */
function drawAxis(node, width, size) {
  const y = size.bars + size.strip + layOutThresholds(node, width, size).height;
  const { ends, ticks } = node.density;
  const shown = size.isLarge ? ticks : ticks.filter((_, i) => ticks.length < 5 || i % 2 === 0);
  const labels = withoutCollisions([...ends, ...shown], width, size.axisFont);
  return [
    svg("line", { x1: 0, x2: width, y1: round(y), y2: round(y), class: "tick" }),
    ...labels.flatMap(({ x, centre, text }) => [
      svg("line", { x1: round(x), x2: round(x), y1: round(y), y2: round(y + 3), class: "tick" }),
      svg(
        "text",
        {
          x: round(centre),
          y: round(y + 3 + size.axisFont),
          "font-size": size.axisFont,
          "text-anchor": "middle",
          class: "muted number",
        },
        text,
      ),
    ]),
  ];
}

/** Two slanted lines through the strip and the axis: what lies beyond is farther away. */
function drawBreaks(node, width, size) {
  const axis = size.bars + size.strip + layOutThresholds(node, width, size).height;
  const middles = [
    [size.bars + size.strip / 2 + 1, size.strip / 2 + 2],
    // Short, out of the way of labels above and below it.
    [axis, 2.5],
  ];
  return node.density.breaks.flatMap((place) =>
    middles.flatMap(([y, reach]) => {
      const x = place * width;
      const line = (shift) => ({
        x1: round(x + shift - 2),
        y1: round(y + reach),
        x2: round(x + shift + 2),
        y2: round(y - reach),
      });
      return [
        svg("line", { ...line(0), class: "break-gap" }),
        svg("line", { ...line(-2), class: "break" }),
        svg("line", { ...line(2), class: "break" }),
      ];
    }),
  );
}

/** Height of what is written below the strip. */
export function orderedLabelsHeight(node, size) {
  const { height } = layOutThresholds(node, axisWidth(node, size), size);
  return height + size.axisFont + 7;
}
