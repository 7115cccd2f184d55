/** The shape function of a pair: the plane's regions coloured by branch, with some rows on it. */

import { branchColour, classColour, targetColour } from "../colours.js";
import { predictionWords } from "../conditions.js";
import { svg, svgText } from "../dom.js";
import { isMissing } from "../predict.js";
import { addTooltip } from "../tooltip.js";
import { countOf, rounded } from "../words.js";
import { axisWidth, missingCentre, missingRows, round, showsMissing } from "./bars.js";

// Room along an axis that the name of a category needs at least.
const LEAST_ROOM = 22;

export function drawPlane(model, node, size) {
  const place = placer(node, size);
  const frame = frameOf(node, size);
  return svg("g", {}, [
    svg("rect", {
      x: frame.left,
      y: 0,
      width: frame.width,
      height: frame.height,
      class: "plane-ground",
    }),
    ...node.regions.map((region, i) => drawRegion(model, node, region, i, place, size)),
    ...drawPoints(model, node, place, size),
    svg("rect", {
      x: frame.left,
      y: 0,
      width: frame.width,
      height: frame.height,
      class: "plane-frame",
    }),
    ...(size.isLarge ? drawScales(model, node, frame) : []),
    ...drawNames(model, node, frame, size),
    ...(showsMissing(node) ? [drawMissing(model, node, frame, size)] : []),
  ]);
}

/** Where a row lies in the plane. */
export function markPoint(model, node, row, size) {
  if (isMissing(node, row)) {
    if (!showsMissing(node)) return null;
    return { x: missingCentre(size), y: frameOf(node, size).height / 2, isPoint: true };
  }
  const at = node.features.map((feature, side) => {
    const { codes } = node.plane.axes[side];
    return codes ? codes.indexOf(row[feature]) + 0.5 : row[feature];
  });
  const [x, y] = placer(node, size)(onAxes(node, at));
  return { x, y, isPoint: true };
}

function frameOf(node, size) {
  const left = size.isLarge ? 34 : 15;
  return { left, width: axisWidth(node, size) - left, height: size.plane };
}

function placer(node, size) {
  const [across, up] = node.plane.axes;
  const { left, width, height } = frameOf(node, size);
  return ([x, y]) => [
    round(left + shareOf(x, across) * width),
    round(height - shareOf(y, up) * height),
  ];
}

const shareOf = (value, { low, high }) => (value / 2 - low / 2) / (high / 2 - low / 2);

/** A point, or the nearest one that the axes show: they leave out the rows' tails. */
function onAxes(node, point) {
  return point.map((value, i) => {
    const { low, high } = node.plane.axes[i];
    return Math.min(Math.max(value, low), high);
  });
}

function drawRegion(model, node, region, i, place, size) {
  const corners = node.plane.polygons[i].map(place);
  const points = corners.map((corner) => corner.join(",")).join(" ");
  const colour = branchColour(region.branch);
  const child = model.nodes[node.children[region.branch]];
  const lines = [region.words, `branch ${region.branch + 1}: ${predictionWords(model, child)}`];
  const focus =
    size.isLarge && corners.length
      ? { tabindex: 0, role: "img", "aria-label": lines.join(", ") }
      : {};
  const shape = svg("polygon", { points, fill: colour, stroke: colour, class: "region", ...focus });
  return addTooltip(shape, lines);
}

function drawPoints(model, node, place, size) {
  const { points, targets } = node.plane;
  const edges = model.targetEdges;
  return points.map((point, i) => {
    const [cx, cy] = place(onAxes(node, point));
    const fill = model.classes
      ? classColour(targets[i])
      : targetColour((targets[i] - edges[0]) / (edges.at(-1) - edges[0]));
    return svg("circle", { cx, cy, r: size.point, fill, class: "point" });
  });
}

function drawNames(model, node, { left, width, height }, size) {
  const [across, up] = node.features.map((feature) => model.features[feature].name);
  const style = { size: size.font, weight: size.isLarge ? 600 : 400, "text-anchor": "middle" };
  const [x, y] = [size.isLarge ? 12 : 9, height / 2];
  return [
    svgText(across, {
      ...style,
      x: left + width / 2,
      y: height + (size.isLarge ? 34 : 13),
      width: width - 8,
    }),
    svgText(up, { ...style, x, y, width: height - 8, transform: `rotate(-90 ${x} ${y})` }),
  ];
}

function drawScales(model, node, frame) {
  const [across, up] = node.features.map((feature) => model.features[feature]);
  return [
    ...drawScale(across, node.plane.axes[0], frame, false),
    ...drawScale(up, node.plane.axes[1], frame, true),
  ];
}

/** Labels of an axis: some numbers, or its categories if there is room for them. */
function drawScale(feature, axis, { left, width, height }, isUp) {
  const length = isUp ? height : width;
  const labels = axis.codes
    ? axis.codes.map((code, i) => [feature.categories[code], i + 0.5])
    : [0.04, 0.5, 0.96]
        .map((share) => (1 - share) * axis.low + share * axis.high)
        .map((value) => [rounded(value, 3), value]);
  if (labels.length > length / LEAST_ROOM) return [];
  const room = axis.codes ? (length / axis.codes.length) * 0.95 : length / 3;
  return labels.map(([text, value]) => {
    const share = shareOf(value, axis);
    const shared = { width: room, size: 11, "text-anchor": "middle", class: "muted number" };
    if (!isUp) return svgText(text, { x: round(left + share * width), y: height + 16, ...shared });
    const y = round(height - share * height);
    return svgText(text, { x: left - 6, y, ...shared, transform: `rotate(-90 ${left - 6} ${y})` });
  });
}

function drawMissing(model, node, frame, size) {
  const [x, width] = [size.width - size.missing, size.missing];
  const child = model.nodes[node.children[node.missingBranch]];
  const lines = [
    "either is missing",
    countOf(missingRows(node), "row"),
    `branch ${node.missingBranch + 1}: ${predictionWords(model, child)}`,
  ];
  const colour = branchColour(node.missingBranch);
  const box = svg("rect", {
    x,
    y: 0,
    width,
    height: frame.height,
    rx: 3,
    fill: colour,
    stroke: colour,
    class: "region",
  });
  const middle = [x + width / 2, frame.height / 2];
  const label = svg(
    "text",
    {
      x: middle[0],
      y: middle[1],
      "font-size": size.font,
      "text-anchor": "middle",
      transform: `rotate(-90 ${middle[0]} ${middle[1]})`,
      dy: "0.35em",
      class: "missing-label",
    },
    "missing",
  );
  const focus = size.isLarge ? { tabindex: 0, role: "img", "aria-label": lines.join(", ") } : {};
  return addTooltip(svg("g", focus, [box, label]), lines);
}
