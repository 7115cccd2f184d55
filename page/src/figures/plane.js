/** The shape function of a pair: a map of its branches, with some rows on it. */

import { branchColour, classColour, targetColour } from "../colours.js";
import { childWords, shortBranchWords } from "../conditions.js";
import { shortenMiddle, svg, svgText, textWidth } from "../dom.js";
import { isMissing } from "../predict.js";
import { addTooltip } from "../tooltip.js";
import { countOf } from "../words.js";
import { axisWidth, grouped, missingCentre, missingRows, round, showsMissing } from "./bars.js";
import { withoutCollisions } from "./labels.js";

// Room along an axis that the name of a category needs at least.
const LEAST_ROOM = 14;
// Categories that a large picture names one above the other.
const MOST_NAMES = 80;
// Share of a picture that labels beside it may take.
const MOST_LABEL = 0.28;
// Letters of a description that are too many for a tooltip.
const LONG_WORDS = 120;

export function drawPlane(model, node, size) {
  const frame = frameOf(model, node, size);
  const place = placer(frame);
  const box = { x: frame.left, y: 0, width: frame.width, height: frame.height };
  return svg("g", {}, [
    svg("rect", { ...box, class: "plane-ground" }),
    ...node.plane.areas.map((loops, branch) => drawArea(model, node, loops, branch, place, size)),
    ...drawPoints(model, node, place, size),
    svg("rect", { ...box, class: "plane-frame" }),
    ...node.plane.axes.flatMap((axis, i) => drawScale(model, node, axis, i, frame, size)),
    ...node.plane.axes.flatMap((axis, i) => drawBreaks(axis, i, frame)),
    ...drawNames(model, node, frame, size),
    ...drawShown(node, frame, size),
    ...(showsMissing(node) ? [drawMissing(model, node, frame, size)] : []),
  ]);
}

/** Where a row lies in the plane. */
export function markPoint(model, node, row, size) {
  const frame = frameOf(model, node, size);
  if (isMissing(node, row)) {
    if (!showsMissing(node)) return null;
    return { x: missingCentre(size), y: frame.height / 2, isPoint: true };
  }
  const at = node.plane.axes.map((axis, i) => {
    const value = row[node.features[node.plane.sides[i]]];
    return axis.codes
      ? (axis.codes.indexOf(value) + 0.5) / axis.codes.length
      : placeOf(value, axis);
  });
  const [x, y] = placer(frame)(at);
  return { x, y, isPoint: true };
}

/** Where the plane lies: beside the labels of what goes up, and the name of that. */
function frameOf(model, node, size) {
  const axis = node.plane.axes[1];
  const height = planeHeight(node, size);
  const labels = axis.codes ? categoryLabels(model, node, axis, 1, height) : axis.ticks;
  const widest = Math.max(0, ...labels.map(([, text]) => textWidth(text, size.axisFont)));
  const left = size.font + 10 + Math.min(widest, size.width * MOST_LABEL);
  return { left, width: axisWidth(node, size) - left, height };
}

/** A large picture is as high as the names of its categories need, unless there are many. */
export function planeHeight(node, size) {
  const { codes } = node.plane.axes[1];
  if (!codes || !size.isLarge || codes.length > MOST_NAMES) return size.plane;
  return Math.max(size.plane, codes.length * LEAST_ROOM);
}

/** From places along the axes, from 0 to 1, to places in the picture. */
function placer({ left, width, height }) {
  return ([x, y]) => [round(left + x * width), round(height - y * height)];
}

/** Where a value lies between two others, or the end that is nearest. */
function shareOf(value, { low, high }) {
  const share = (value / 2 - low / 2) / (high / 2 - low / 2);
  return Math.min(Math.max(share, 0), 1);
}

/** Where a value lies on an axis, which may be broken and leaves out the rows' tails. */
function placeOf(value, axis) {
  return bent(shareOf(value, axis), axis.bends);
}

/** A number between those that pairs name first, in proportion between those named second. */
export function bent(value, pairs) {
  const after = Math.max(
    1,
    pairs.findIndex(([from]) => value <= from),
  );
  const [[low, start], [high, end]] = pairs.slice(after - 1);
  return high > low ? start + ((value - low) / (high - low)) * (end - start) : start;
}

/** All that goes to one branch, as one shape. */
function drawArea(model, node, loops, branch, place, size) {
  const d = loops
    .map((loop) => `M${loop.map((point) => place(point).join(" ")).join("L")}Z`)
    .join("");
  const lines = [
    `branch ${branch + 1}: ${childWords(model, node, branch)}`,
    shortBranchWords(node, branch, (words) => words.length <= LONG_WORDS),
  ];
  const focus =
    size.isLarge && loops.length
      ? { tabindex: 0, role: "img", "aria-label": lines.join(", ") }
      : {};
  const shape = svg("path", { d, fill: branchColour(branch), class: "region", ...focus });
  shape.style.setProperty("--line-width", node.plane.line);
  return addTooltip(shape, lines);
}

function drawPoints(model, node, place, size) {
  const { points, targets } = node.plane;
  return points.map((point, i) => {
    const [cx, cy] = place(point);
    const fill = model.classes
      ? classColour(targets[i])
      : targetColour(shareOf(targets[i], model.targets));
    return svg("circle", { cx, cy, r: size.point, fill, class: "point" });
  });
}

/** How many rows are drawn, if that is not all that have both features. */
function drawShown(node, { height }, size) {
  const all = node.rows - node.plane.missing;
  const shown = node.plane.points.length;
  if (!size.isLarge || shown >= all) return [];
  const words = `${grouped(shown)} of ${grouped(all)} rows shown`;
  return [svgText(words, { x: 0, y: height + 36, size: size.axisFont, class: "muted" })];
}

/** The names of the features: what goes to the right below, what goes up on the left. */
function drawNames(model, node, { left, width, height }, size) {
  const [across, up] = node.plane.sides.map((side) => model.features[node.features[side]].name);
  const style = { size: size.font, weight: size.isLarge ? 600 : 400, "text-anchor": "middle" };
  const [x, y] = [size.isLarge ? 11 : 8, height / 2];
  return [
    svgText(across, {
      ...style,
      x: left + width / 2,
      y: height + (size.isLarge ? 36 : 25),
      width: width - 8,
    }),
    svgText(up, { ...style, x, y, width: height - 8, transform: `rotate(-90 ${x} ${y})` }),
  ];
}

/** Labels of an axis: round numbers, or its categories if there is room for them. */
function drawScale(model, node, axis, i, { left, width, height }, size) {
  const isUp = i === 1;
  const length = isUp ? height : width;
  const font = size.axisFont;
  const labels = axis.codes ? categoryLabels(model, node, axis, i, length) : axis.ticks;
  const style = { size: font, class: "muted number" };
  if (isUp) {
    return labels.flatMap(([place, text]) => {
      const y = round(height - place * height);
      const at = Math.min(Math.max(y + font * 0.35, font * 0.8), height);
      return [
        svg("line", { x1: left - 3, x2: left, y1: y, y2: y, class: "tick" }),
        svgText(text, {
          ...style,
          x: left - 5,
          y: at,
          width: left - size.font - 9,
          "text-anchor": "end",
        }),
      ];
    });
  }
  const room = axis.codes ? (length / labels.length) * 0.95 : Infinity;
  const shown = labels.map(([place, text]) => [place, shortenMiddle(text, room, font)]);
  return withoutCollisions(shown, width, font).flatMap(({ x, centre, text }) => [
    svg("line", {
      x1: round(left + x),
      x2: round(left + x),
      y1: height,
      y2: height + 3,
      class: "tick",
    }),
    svgText(text, {
      ...style,
      x: round(left + centre),
      y: height + 4 + font,
      "text-anchor": "middle",
    }),
  ]);
}

/** Where an axis is broken, a line across the plane, and two slanted ones at its ends. */
function drawBreaks({ bends = [] }, i, { left, width, height }) {
  return bends.slice(1, -1).flatMap(([, place]) => {
    const [atX, atY] = [round(left + place * width), round(height - place * height)];
    const ends =
      i === 1
        ? [
            [left, atY],
            [left + width, atY],
          ]
        : [
            [atX, 0],
            [atX, height],
          ];
    const [[x1, y1], [x2, y2]] = ends;
    const slant = ([x, y], shift, kind) => {
      const [across, up] = i === 1 ? [3.5, 2] : [2, 3.5];
      const [cx, cy] = i === 1 ? [x, y + shift] : [x + shift, y];
      return svg("line", {
        x1: round(cx - across),
        y1: round(cy + up),
        x2: round(cx + across),
        y2: round(cy - up),
        class: kind,
      });
    };
    return [
      svg("line", { x1, y1, x2, y2, class: "plane-break" }),
      ...ends.flatMap((at) => [
        slant(at, 0, "break-gap"),
        slant(at, -2, "break"),
        slant(at, 2, "break"),
      ]),
    ];
  });
}

/** The names of an axis's categories if there is room for them, or how many there are. */
function categoryLabels(model, node, { codes }, i, length) {
  if (codes.length > length / LEAST_ROOM) return [[0.5, `${codes.length} values`]];
  const { categories } = model.features[node.features[node.plane.sides[i]]];
  return codes.map((code, slot) => [(slot + 0.5) / codes.length, categories[code]]);
}

function drawMissing(model, node, frame, size) {
  const [x, width] = [size.width - size.missing, size.missing];
  const lines = [
    "either is missing",
    countOf(missingRows(node), "row"),
    `branch ${node.missingBranch + 1}: ${childWords(model, node, node.missingBranch)}`,
  ];
  const colour = branchColour(node.missingBranch);
  const box = svg("rect", {
    x,
    y: 0,
    width,
    height: frame.height,
    rx: 3,
    fill: colour,
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
