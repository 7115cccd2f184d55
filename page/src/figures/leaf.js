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
  const edges = model.targetEdges;
  const step = width / node.counts.length;
  const most = Math.max(...node.counts, 1);
  const d = node.counts
    .map((count, i) => {
      const h = round((count / most) * height);
      return count ? `M${round(i * step)} ${height}v${-h}h${round(step - 0.6)}v${h}z` : "";
    })
    .join("");
  const share = (node.value[0] - edges[0]) / (edges.at(-1) - edges[0]);
  const x = round(Math.min(Math.max(share, 0), 1) * width);
  return svg("g", {}, [
    svg("path", { d, class: "target-bars" }),
    svg("line", { x1: 0, x2: width, y1: height, y2: height, class: "base" }),
    svg("line", { x1: x, x2: x, y1: -3, y2: height, class: "target-line" }),
  ]);
}
