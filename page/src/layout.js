/** Where the cards go: levels from left to right, every subtree in a band of its own. */

import { CARD_WIDTH, cardHeight } from "./card.js";

const BETWEEN_LEVELS = 84;
const BETWEEN_CARDS = 18;
const BETWEEN_SUBTREES = 10;

/** Places of all nodes that are shown, by number, and the size of the whole. */
export function layOut(model, folded) {
  const places = new Map();
  const height = placeBand(model, model.nodes[0], folded, 0, places);
  const width = Math.max(...[...places.values()].map((place) => place.x)) + CARD_WIDTH;
  return { places, width, height };
}

/** Places a subtree from `top` on; tells how high its band is. */
function placeBand(model, node, folded, top, places) {
  const own = cardHeight(model, node);
  const x = node.depth * (CARD_WIDTH + BETWEEN_LEVELS);
  if (node.isLeaf || folded.has(node.number)) {
    places.set(node.number, { x, y: top, height: own });
    return own;
  }
  let bottom = top;
  node.children.forEach((child, branch) => {
    const gap = branch === 0 ? 0 : gapBefore(model, node, branch);
    bottom += gap + placeBand(model, model.nodes[child], folded, bottom + gap, places);
  });
  const [first, last] = [node.children[0], node.children.at(-1)].map((child) => places.get(child));
  const centre = (first.y + first.height / 2 + last.y + last.height / 2) / 2;
  places.set(node.number, { x, y: centre - own / 2, height: own });
  return fitParent(model, node, folded, top, bottom, places);
}

/** Moves a band down if its first card is higher than all its children together. */
function fitParent(model, node, folded, top, bottom, places) {
  const { y, height } = places.get(node.number);
  const shift = Math.max(0, top - y);
  if (shift > 0) {
    for (const below of shownSubtree(model, node, folded)) places.get(below.number).y += shift;
  }
  return Math.max(bottom, y + height) + shift - top;
}

function gapBefore(model, node, branch) {
  const [one, other] = [branch - 1, branch].map((which) => model.nodes[node.children[which]]);
  return BETWEEN_CARDS + (one.isLeaf && other.isLeaf ? 0 : BETWEEN_SUBTREES);
}

/** The node and what is shown below it. */
export function shownSubtree(model, node, folded) {
  if (folded.has(node.number)) return [node];
  const below = node.children.map((child) => shownSubtree(model, model.nodes[child], folded));
  return [node, ...below.flat()];
}
