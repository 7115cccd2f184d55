/** The parts that pictures of one feature share: bars of rows, strips of branches, missing values. */

import { branchColour, classColour } from "../colours.js";
import { childWords } from "../conditions.js";
import { svg } from "../dom.js";
import { addTooltip } from "../tooltip.js";
import { countOf, percent, rounded } from "../words.js";

const GAP = 7;

export const showsMissing = (node) => node.sawMissing || missingRows(node) > 0;

export function missingRows(node) {
  return node.plane ? node.plane.missing : sum(node.density.missing);
}

/** Width that is left for the axis beside the cell of missing values. */
export function axisWidth(node, size) {
  return size.width - (showsMissing(node) ? size.missing + GAP : 0);
}

/** Centre of the cell of missing values. */
export const missingCentre = (size) => size.width - size.missing / 2;

/** A cell's rows as [class, count] of those classes that it has; all are class 0 in regression. */
export function classCounts(model, node, cell) {
  const counts = node.density.counts[cell];
  if (!model.classes) return counts > 0 ? [[0, counts]] : [];
  return Array.from({ length: counts.length / 2 }, (_, i) => [counts[2 * i], counts[2 * i + 1]]);
}

export function missingCounts(node) {
  return node.density.missing.map((count, number) => [number, count]).filter(([, count]) => count);
}

/**
 * Bars of stacked classes, whose areas are proportional to rows.
 *
 * @param columns  [{x, width, counts}] with counts as of `classCounts`.
 */
export function drawBars(model, columns, height) {
  const tallest = Math.max(...columns.map((column) => heightOf(column)), 1e-9);
  const paths = new Map();
  for (const column of columns) {
    let y = height;
    for (const [number, count] of column.counts) {
      const h = (count / column.width / tallest) * height;
      y -= h;
      const [x, w] = [round(column.x), round(column.width)];
      const box = `M${x} ${round(y)}h${w}v${round(h)}h${-w}z`;
      paths.set(number, (paths.get(number) ?? "") + box);
    }
  }
  return [...paths].map(([number, d]) =>
    model.classes
      ? svg("path", { d, fill: classColour(number) })
      : svg("path", { d, class: "target-bars" }),
  );
}

const heightOf = ({ counts, width }) => sum(counts.map(([, count]) => count)) / width;

/** A part of the strip that goes to one branch, with a tooltip over its full height. */
export function drawPart(node, { x, width, branch, isMissing = false }, size, lines) {
  const top = size.bars + 2;
  const box = { x: round(x), width: round(Math.max(width, 0.5)) };
  const parts = [
    svg("rect", { ...box, y: top, height: size.strip - 2, rx: 2, fill: branchColour(branch) }),
    svg("rect", { ...box, y: 0, height: size.bars + size.strip, class: "hit" }),
  ];
  if (isMissing) parts.splice(1, 0, missingSign(x + width / 2, top + size.strip - 2, size));
  const label = lines.join(", ");
  const focus = size.isLarge ? { tabindex: 0, role: "img", "aria-label": label } : {};
  return addTooltip(svg("g", { class: "part", ...focus }, parts), lines);
}

function missingSign(x, bottom, size) {
  const attributes = {
    x,
    y: bottom + size.font + 2,
    "font-size": size.font,
    "text-anchor": "middle",
  };
  return svg("text", { ...attributes, class: "muted" }, size.isLarge ? "missing" : "?");
}

/** What a tooltip says about rows and about where they go. */
export function partLines(model, node, words, branch, counts, mean) {
  const rows = rowsIn(counts);
  const lines = [words, countOf(rows, "row")];
  if (model.classes && rows > 0) lines.push(classLine(model, counts, rows));
  if (!model.classes && mean !== null && rows > 0) lines.push(`mean ${rounded(mean)}`);
  return [...lines, `branch ${branch + 1}: ${childWords(model, node, branch)}`];
}

/** Some of a node's rows in words: how many, and how many of them are what their branch predicts. */
export function ownRows(model, node, branch, counts, mean) {
  const rows = rowsIn(counts);
  const { predicted } = model.nodes[node.children[branch]];
  if (rows === 0) return "0";
  if (!model.classes) return `${grouped(rows)} (mean ${rounded(mean)})`;
  const right = counts.find(([number]) => number === predicted)?.[1] ?? 0;
  return `${grouped(rows)} (${percent(right / rows)} are ${model.classes[predicted]})`;
}

const rowsIn = (counts) => sum(counts.map(([, count]) => count));

export const grouped = (count) => count.toLocaleString("en-US");

function classLine(model, counts, rows) {
  const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 4);
  return most.map(([number, n]) => `${model.classes[number]} ${percent(n / rows)}`).join(", ");
}

/** Counts of several cells together. */
export function addCounts(lists) {
  const total = new Map();
  for (const [number, count] of lists.flat()) total.set(number, (total.get(number) ?? 0) + count);
  return [...total].sort((a, b) => a[0] - b[0]);
}

/** Mean target of cells, given their counts and means. */
export function joinMeans(node, cells) {
  const { counts, means } = node.density;
  if (!means) return null;
  const rows = sum(cells.map((cell) => counts[cell]));
  return rows ? sum(cells.map((cell) => counts[cell] * (means[cell] ?? 0))) / rows : null;
}

export const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
export const round = (number) => Math.round(number * 100) / 100;
