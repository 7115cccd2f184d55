/** A row to start from: a middle value, or the commonest category, of every feature in use. */

import { classCounts, sum } from "./figures/bars.js";
import { bent } from "./figures/plane.js";
import { nearMoment } from "./dates.js";
import { isCategorical } from "./model.js";
import { rounded } from "./words.js";

export function typicalRow(model) {
  return model.features.map((feature, number) => {
    const node = firstNodeOf(model, number);
    if (!node) return null;
    if (isCategorical(feature)) return commonest(model, node, number);
    const middle = node.density ? medianOfCells(model, node) : medianOfPoints(node, number);
    if (feature.date) {
      const [low, high] = rangeOf(model, number);
      return withinRange(feature, nearMoment(middle, high - low, feature.date));
    }
    return withinRange(feature, feature.whole ? Math.round(middle) : Number(rounded(middle, 3)));
  });
}

/** The number, or the nearest that training has seen: cells reach a little beyond. */
function withinRange({ range }, number) {
  return Math.min(Math.max(number, range?.[0] ?? -Infinity), range?.[1] ?? Infinity);
}

/** The range that a feature's slider covers: all axes that show it. */
export function rangeOf(model, feature) {
  const ends = model.nodes
    .filter((node) => node.features.includes(feature))
    .flatMap((node) => {
      if (node.density) return [node.density.edges[0], node.density.edges.at(-1)];
      const axis = node.plane.axes[axisOf(node, feature)];
      return [axis.low, axis.high];
    });
  return [Math.min(...ends), Math.max(...ends)];
}

/** The node nearest to the root that uses a feature: the one that has seen most rows. */
function firstNodeOf(model, feature) {
  const nodes = model.nodes.filter((node) => node.features.includes(feature));
  return nodes.sort((one, other) => one.depth - other.depth || other.rows - one.rows)[0];
}

function rowsInCells(model, node) {
  return node.density.counts.map((_, cell) =>
    sum(classCounts(model, node, cell).map(([, count]) => count)),
  );
}

function medianOfCells(model, node) {
  const rows = rowsInCells(model, node);
  const { edges } = node.density;
  let left = sum(rows) / 2;
  const cell = rows.findIndex((count) => (left -= count) <= 0);
  return edges[cell] / 2 + edges[cell + 1] / 2;
}

/** Which axis of a node's plane shows a feature. */
function axisOf(node, feature) {
  return node.plane.sides.indexOf(node.features.indexOf(feature));
}

function medianOfPoints(node, feature) {
  const which = axisOf(node, feature);
  const { low, high, bends } = node.plane.axes[which];
  const places = node.plane.points.map((point) => point[which]).sort((a, b) => a - b);
  const place = places.length ? places[places.length >> 1] : 0.5;
  const share = bent(
    place,
    bends.map(([from, to]) => [to, from]),
  );
  return (1 - share) * low + share * high;
}

function commonest(model, node, feature) {
  if (node.density) return indexOfMost(rowsInCells(model, node));
  const which = axisOf(node, feature);
  const { codes } = node.plane.axes[which];
  const slots = node.plane.points.map((point) => Math.floor(point[which] * codes.length));
  return (
    codes[indexOfMost(codes.map((_, slot) => slots.filter((at) => at === slot).length))] ?? null
  );
}

const indexOfMost = (counts) => counts.indexOf(Math.max(...counts));
