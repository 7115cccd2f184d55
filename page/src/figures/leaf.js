/** What a leaf holds: shares of the classes, or how the target is spread. */

import { classColour } from "../colours.js";
import { svg } from "../dom.js";
import { round } from "./bars.js";

/** A bar of the shares that the classes have of a node's rows. */
export function drawShares(node, width, height) {
  let x = 0;
  const parts = node.counts.flatMap((count, number) => {
    const share = count / Math.max(node.rows, 1);
    const start = x;
    x += share * width;
    if (share <= 0) return [];
    return [
      svg("rect", {
        x: round(start),
        width: round(share * width),
        height,
        fill: classColour(number),
      }),
    ];
  });
  return svg("g", {}, parts);
}

/** A histogram of the target, with a line at the prediction. */
export function drawTargets(model, node, width, height) {
  const { edges } = model.targets;
  const step = width / node.counts.length;
  const most = Math.max(...node.counts, 1);
  const d = node.counts
    .map((count, i) => {
      const h = round((count / most) * height);
      return count ? `M${round(i * step)} ${height}v${-h}h${round(step - 0.6)}v${h}z` : "";
    })
    .join("");
  const x = round(placeOf(node.value[0], edges) * width);
  return svg("g", {}, [
    svg("path", { d, class: "target-bars" }),
    svg("line", { x1: 0, x2: width, y1: height, y2: height, class: "base" }),
    svg("line", { x1: x, x2: x, y1: -3, y2: height, class: "target-line" }),
  ]);
}

/** Where a target lies among cells of which all are drawn equally wide, from 0 to 1. */
function placeOf(target, edges) {
  const cell = Math.min(
    Math.max(edges.findIndex((edge) => target <= edge) - 1, 0),
    edges.length - 2,
  );
  const [low, high] = target > edges.at(-1) ? edges.slice(-2) : edges.slice(cell, cell + 2);
  const share = Math.min(Math.max((target / 2 - low / 2) / (high / 2 - low / 2), 0), 1);
  return ((target > edges.at(-1) ? edges.length - 2 : cell) + share) / (edges.length - 1);
}
