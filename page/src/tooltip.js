/** The little window with exact values, on hover and on keyboard focus. */

import { byId, html } from "./dom.js";

const GAP = 14;

/** Shows lines of text while the pointer or the focus is on an element. */
export function addTooltip(element, lines) {
  element.addEventListener("pointermove", (event) => show(lines, event.clientX, event.clientY));
  element.addEventListener("pointerleave", hideTooltip);
  // In SVG, whatever listens to the focus can have it; what cannot be named should not.
  if (!element.hasAttribute("tabindex")) return element;
  element.addEventListener("focus", () => {
    const box = element.getBoundingClientRect();
    show(lines, box.left + box.width / 2, box.bottom);
  });
  element.addEventListener("blur", hideTooltip);
  return element;
}

export function hideTooltip() {
  byId("tooltip").hidden = true;
}

function show(lines, x, y) {
  const tip = byId("tooltip");
  tip.replaceChildren(...lines.map((line) => html("div", { dir: "auto" }, line)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.max(4, Math.min(x + GAP, window.innerWidth - width - 4));
  const below = y + GAP + height <= window.innerHeight;
  tip.style.left = `${left}px`;
  tip.style.top = `${Math.max(4, below ? y + GAP : y - GAP - height)}px`;
}
