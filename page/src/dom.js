/** Making elements. Names from the data are only ever set as text or as attributes. */

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with attributes and children; text stays text, null is left out. */
export function html(tag, attributes = {}, children = []) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, children = []) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export const byId = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...[children].flat().filter((child) => child !== null));
  return element;
}

/** A name that somebody else chose, in its own direction. */
export function nameText(name, className = "name") {
  return html("bdi", { class: className, title: name }, name);
}

const canvas = document.createElement("canvas").getContext("2d");

/** Width of text in the page's font. */
export function textWidth(text, size, weight = 400) {
  canvas.font = `${weight} ${size}px system-ui, sans-serif`;
  return canvas.measureText(text).width;
}

/** The text, or as much of its beginning and end as a width has room for. */
export function shortenMiddle(text, width, size) {
  if (textWidth(text, size) <= width) return text;
  const letters = [...text];
  for (let kept = letters.length - 1; kept > 1; kept--) {
    const [head, tail] = [Math.ceil(kept / 2), Math.floor(kept / 2)];
    const tried = `${letters.slice(0, head).join("")}…${letters.slice(-tail).join("")}`;
    if (textWidth(tried, size) <= width) return tried;
  }
  return "…";
}

/** The text, or as much of its beginning as a width has room for, with an ellipsis. */
export function shorten(text, width, size, weight = 400) {
  if (textWidth(text, size, weight) <= width) return text;
  const letters = [...text];
  let [fits, tooLong] = [0, letters.length];
  while (tooLong - fits > 1) {
    const middle = (fits + tooLong) >> 1;
    const tried = `${letters.slice(0, middle).join("")}…`;
    if (textWidth(tried, size, weight) <= width) fits = middle;
    else tooLong = middle;
  }
  return `${letters.slice(0, fits).join("").trimEnd()}…`;
}

/** A line of SVG text that is cut to a width. */
export function svgText(
  text,
  { x = 0, y = 0, width = Infinity, size = 12, weight = 400, ...more },
) {
  const shown = width === Infinity ? text : shorten(text, width, size, weight);
  const element = svg("text", { x, y, "font-size": size, "font-weight": weight, ...more }, shown);
  if (shown !== text) element.append(svg("title", {}, text));
  return element;
}
