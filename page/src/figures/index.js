/** Pictures of shape functions and of leaves, small for cards and large for the panel. */

import { drawCategories, markCategory } from "./categories.js";
import { drawOrdered, markValue, orderedLabelsHeight } from "./ordered.js";
import { drawPlane, markPoint, planeHeight } from "./plane.js";

export const SMALL = {
  width: 216,
  bars: 38,
  strip: 9,
  listLines: 8,
  plane: 118,
  chips: 17,
  missing: 20,
  font: 10.5,
  axisFont: 9.5,
  point: 2.2,
  dot: 2.2,
};
export const LARGE = {
  width: 380,
  bars: 130,
  strip: 20,
  plane: 300,
  chips: 0,
  missing: 34,
  font: 12,
  axisFont: 11,
  point: 3.6,
  dot: 4,
  isLarge: true,
};

/** A node's shape function with its rows. */
export function drawShape(model, node, size) {
  if (node.regions) return drawPlane(model, node, size);
  return node.segments[0].codes
    ? drawCategories(model, node, size)
    : drawOrdered(model, node, size);
}

/** Height of what `drawShape` draws. */
export function shapeHeight(node, size) {
  if (node.regions) return planeHeight(node, size) + (size.isLarge ? 46 : 28);
  const axis = size.bars + size.strip;
  if (!node.segments[0].codes) return axis + orderedLabelsHeight(node, size);
  return axis + (size.isLarge ? 66 : 5 + node.children.length * size.chips);
}

/** Where a row lies in a node's picture: {x, y}; y is that of the strip's lower edge or a point. */
export function markRow(model, node, row, size) {
  if (node.regions) return markPoint(model, node, row, size);
  return node.segments[0].codes ? markCategory(node, row, size) : markValue(node, row, size);
}
