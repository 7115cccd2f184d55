/** Panning and zooming the tree. */

import { select } from "d3-selection";
import { zoom as makeZoom, zoomIdentity, zoomTransform } from "d3-zoom";

const SCALES = [0.02, 4];
const STEP = 1.3;
const MARGIN = 28;
const TOP_MARGIN = 62; // below the buttons
// Below this, cards cannot be read; the first sight of a tree is not smaller.
const LEAST_READABLE = 0.5;
const LARGEST_FIT = 1.15;

/** Lets `content` be moved within `frame`, an SVG element. */
export function makeZoomable(frame, content) {
  const stage = select(frame);
  const behaviour = makeZoom()
    .scaleExtent(SCALES)
    .on("zoom", (event) => content.setAttribute("transform", event.transform));
  stage.call(behaviour).on("dblclick.zoom", null);
  const moveTo = (transform) => stage.call(behaviour.transform, transform);

  function moveBy(x, y) {
    const now = zoomTransform(frame);
    moveTo(zoomIdentity.translate(now.x + x, now.y + y).scale(now.k));
  }

  function fit(size, least = 0) {
    const { width, height } = frame.getBoundingClientRect();
    if (!width || !height) return;
    const [across, down] = [width - 2 * MARGIN, height - MARGIN - TOP_MARGIN];
    const k = Math.max(Math.min(across / size.width, down / size.height, LARGEST_FIT), least);
    // Too large a tree starts at its root, which is at the left.
    const x = Math.max((width - k * size.width) / 2, MARGIN);
    const centre = k * size.height > down ? size.rootY : size.height / 2;
    moveTo(zoomIdentity.translate(x, TOP_MARGIN + down / 2 - k * centre).scale(k));
  }

  return {
    fit: (size) => fit(size),
    fitReadably: (size) => fit(size, LEAST_READABLE),
    zoomIn: () => stage.call(behaviour.scaleBy, STEP),
    zoomOut: () => stage.call(behaviour.scaleBy, 1 / STEP),
    moveBy,
    /** Moves as little as is needed to see a box. */
    reveal(box) {
      const shift = shiftToShow(box, frame.getBoundingClientRect());
      if (shift.x || shift.y) moveBy(shift.x, shift.y);
    },
    /** Takes the view back to where it was before the tree was printed. */
    restore: () => content.setAttribute("transform", zoomTransform(frame)),
  };
}

function shiftToShow(box, frame) {
  const along = (start, end, from, to) => {
    if (start < from + MARGIN) return from + MARGIN - start;
    return end > to - MARGIN ? Math.max(to - MARGIN - end, from + MARGIN - start) : 0;
  };
  return {
    x: along(box.left, box.right, frame.left, frame.right),
    y: along(box.top, box.bottom, frame.top, frame.bottom),
  };
}
