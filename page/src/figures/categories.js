/** The shape function of a categorical feature: a bar for each category, grouped by branch. */

import { branchColour } from "../colours.js";
import { shorten, svg, svgText, textWidth } from "../dom.js";
import { isMissing } from "../predict.js";
import {
  axisWidth,
  classCounts,
  drawBars,
  drawPart,
  missingCentre,
  partLines,
  round,
  showsMissing,
} from "./bars.js";
import { drawMissing, missingColumn } from "./ordered.js";

const BETWEEN_GROUPS = 5;
const LABEL_SIZE = 11;
const SLANT = 40;
const MAX_LABELS = 24;

export function drawCategories(model, node, size) {
  const columns = columnsOf(node, size);
  const bars = columns.map((column) => ({
    ...column,
    width: column.width * 0.86,
    counts: classCounts(model, node, column.code),
  }));
  const hasMissing = showsMissing(node);
  if (hasMissing) bars.push(missingColumn(node, size));
  return svg("g", {}, [
    ...drawBars(model, bars, size.bars),
    ...columns.map((column) => drawColumn(model, node, column, size)),
    ...(hasMissing ? [drawMissing(model, node, size)] : []),
    ...(size.isLarge ? drawLabels(model, node, columns, size) : drawChips(model, node, size)),
  ]);
}

/** Where a row's category lies on the strip. */
export function markCategory(node, row, size) {
  const y = size.bars + 2;
  if (isMissing(node, row)) return showsMissing(node) ? { x: missingCentre(size), y } : null;
  const column = columnsOf(node, size).find(({ code }) => code === row[node.features[0]]);
  return { x: column.x + (column.width * 0.86) / 2, y };
}

/** Categories that go to one branch and stand side by side: in their own order if they have one. */
function groupsOf(node) {
  const groups = node.segments.filter((segment) => segment.codes.length > 0);
  if (!node.isOrdered) return groups;
  const columns = groups.flatMap(({ codes, branch }) => codes.map((code) => ({ code, branch })));
  columns.sort((one, other) => one.code - other.code);
  const runs = [];
  for (const { code, branch } of columns) {
    if (runs.at(-1)?.branch === branch) runs.at(-1).codes.push(code);
    else runs.push({ branch, codes: [code] });
  }
  return runs;
}

/** Place of each category. */
function columnsOf(node, size) {
  const groups = groupsOf(node);
  const n = groups.flatMap(({ codes }) => codes).length;
  const gap = Math.min(BETWEEN_GROUPS, size.width / n / 3);
  const step = (axisWidth(node, size) - gap * (groups.length - 1)) / n;
  let x = 0;
  return groups.flatMap((segment, i) => {
    if (i > 0) x += gap;
    return segment.codes.map((code) => {
      x += step;
      return { code, branch: segment.branch, x: x - step, width: step };
    });
  });
}

function drawColumn(model, node, { code, branch, x, width }, size) {
  const name = model.features[node.features[0]].categories[code];
  const counts = classCounts(model, node, code);
  const lines = partLines(model, node, name, branch, counts, node.density.means?.[code] ?? null);
  return drawPart(node, { x, width: width * 0.86, branch }, size, lines);
}

/** A line of chips for each branch, as many as fit. */
function drawChips(model, node, size) {
  const top = size.bars + size.strip + 5;
  return node.segments.map((segment, i) => {
    const y = top + i * size.chips;
    const sign = svg("rect", {
      x: 0,
      y: y + 2,
      width: 5,
      height: size.chips - 5,
      rx: 2,
      fill: branchColour(segment.branch),
    });
    const names = segment.codes.map((code) => model.features[node.features[0]].categories[code]);
    if (node.sawMissing && node.missingBranch === segment.branch) names.push("missing");
    return svg("g", {}, [sign, ...chipsThatFit(names, 9, y, size)]);
  });
}

function chipsThatFit(names, start, y, size) {
  const chips = [];
  let x = start;
  for (const [i, name] of names.entries()) {
    const rest = names.length - i - 1;
    const room = size.width - x - (rest > 0 ? 30 : 0) - 10;
    const text = shorten(name, Math.min(room, 120), size.font);
    if (i > 0 && (room < 12 || textWidth(name, size.font) > room)) {
      return [
        ...chips,
        svgText(`+${names.length - i}`, { x, y: y + 12, size: size.font, class: "muted" }),
      ];
    }
    const width = textWidth(text, size.font) + 10;
    chips.push(chip(text, name, x, y, width, size));
    x += width + 4;
  }
  return chips;
}

function chip(text, name, x, y, width, size) {
  return svg("g", {}, [
    svg("rect", { x, y, width, height: size.chips - 2, rx: 5, class: "chip-box" }),
    svg("text", { x: x + 5, y: y + 11, "font-size": size.font, class: "chip-text" }, text),
    svg("title", {}, name),
  ]);
}

/** Names below the bars, slanted if neighbours would touch; none if there are too many. */
function drawLabels(model, node, columns, size) {
  if (columns.length > MAX_LABELS) return [];
  const names = columns.map(({ code }) => model.features[node.features[0]].categories[code]);
  const fit = names.every((name, i) => textWidth(name, LABEL_SIZE) <= columns[i].width);
  return columns.map(({ x, width }, i) => {
    const middle = round(x + (width * 0.86) / 2);
    return fit ? levelLabel(names[i], middle, size) : slantedLabel(names[i], middle + 3, size);
  });
}

function levelLabel(name, x, size) {
  const y = size.bars + size.strip + 15;
  return svgText(name, { x, y, size: LABEL_SIZE, "text-anchor": "middle", class: "muted" });
}

function slantedLabel(name, x, size) {
  const y = size.bars + size.strip + 10;
  // Slanted to the left, it may run into the panel's margin.
  const room = Math.min(82, (x + 18) / Math.cos((SLANT * Math.PI) / 180));
  const transform = `rotate(${-SLANT} ${x} ${y})`;
  const style = { size: LABEL_SIZE, "text-anchor": "end", class: "muted" };
  return svgText(name, { x, y, width: room, transform, ...style });
}
