/**
 * On paper the whole tree is shown, unfolded and as wide as the sheet.
 *
 * It is parted into bands, each low enough for a sheet of any format.
 */

import { svg } from "./dom.js";

// Height of a band as a share of its width: less than that of a sheet on its side with a header.
const BAND = 0.55;
const MARGIN = 12;

export function setUpPrint(tree) {
  const paper = matchMedia("print");
  let folded = null;
  let bands = [];
  const arrange = (isPrinting) => {
    if (isPrinting === (folded !== null)) return;
    for (const band of bands) band.remove();
    bands = [];
    const before = folded ?? new Set();
    folded = isPrinting ? tree.folded : null;
    tree.folded = before;
    tree.draw();
    if (!isPrinting) {
      tree.zoom.restore();
      return;
    }
    tree.content.removeAttribute("transform");
    bands = bandsOf(tree.layout).map(([top, bottom]) => drawBand(tree.layout, top, bottom));
    tree.frame.after(...bands);
  };
  paper.addEventListener("change", () => arrange(paper.matches));
  window.addEventListener("beforeprint", () => arrange(true));
  window.addEventListener("afterprint", () => arrange(false));
}

/** Where bands start and end; a card that the end of one cuts is whole in the next. */
function bandsOf({ places, width, height }) {
  const cards = [...places.values()];
  const most = Math.max(BAND * width, ...cards.map((card) => card.height + 2 * MARGIN));
  const bottom = height + MARGIN;
  const bands = [];
  let top = -MARGIN;
  while (bands.at(-1)?.[1] !== bottom) {
    const end = Math.min(top + most, bottom);
    bands.push([top, end]);
    const cut = cards.filter((card) => card.y < end && end < card.y + card.height);
    top = Math.min(end, ...cut.map((card) => card.y - 2));
  }
  return bands;
}

function drawBand({ width }, top, bottom) {
  const viewBox = `-${MARGIN} ${top} ${width + 2 * MARGIN + 20} ${bottom - top}`;
  return svg("svg", { class: "band", viewBox, "aria-hidden": "true" }, [
    svg("use", { href: "#tree-content" }),
  ]);
}
