/** The tree: its cards and edges, folding, focus, and the path of the row that is tried out. */

import { CARD_WIDTH, drawCard, drawFoldButton } from "./card.js";
import { branchColour } from "./colours.js";
import { nodeLabel } from "./conditions.js";
import { byId, svg } from "./dom.js";
import { markRow, SMALL } from "./figures/index.js";
import { layOut, shownSubtree } from "./layout.js";
import { pathTo, subtreeOf } from "./model.js";
import { makeZoomable } from "./zoom.js";

const EDGE_WIDTHS = [1.5, 13];
// At first so much is unfolded as can be seen at this scale.
const FIRST_SCALE = 0.75;

export class Tree {
  constructor(model, onOpen) {
    this.model = model;
    this.onOpen = onOpen;
    this.focused = 0;
    this.opened = null;
    this.found = new Set();
    this.path = [];
    this.row = null;
    this.cards = new Map();
    this.edges = svg("g", { "aria-hidden": "true" });
    this.items = svg("g", { role: "tree", "aria-label": "Nodes of the tree", id: "nodes" });
    this.content = svg("g", { id: "tree-content" }, [this.edges, this.items]);
    this.frame = byId("stage");
    this.frame.append(this.content);
    this.folded = firstFolding(model, this.frame.getBoundingClientRect());
    this.zoom = makeZoomable(this.frame, this.content);
    this.draw();
    this.zoom.fitReadably(this.size());
  }

  size() {
    const root = this.layout.places.get(0);
    return { ...this.layout, rootY: root.y + root.height / 2 };
  }

  draw() {
    this.layout = layOut(this.model, this.folded);
    this.shown = shownSubtree(this.model, this.model.nodes[0], this.folded);
    const below = this.shown.filter((node) => node.parent !== null);
    this.edges.replaceChildren(...below.map((node) => this.drawEdge(node)));
    const hadFocus = this.items.contains(document.activeElement);
    this.cards = new Map(this.shown.map((node) => [node.number, this.drawItem(node)]));
    this.items.replaceChildren(...this.cards.values());
    if (!this.cards.has(this.focused)) this.focused = this.firstShownAbove(this.focused);
    this.update();
    if (hadFocus) this.focus(this.focused);
  }

  drawEdge(node) {
    const parent = this.model.nodes[node.parent];
    const [from, to] = [parent, node].map(({ number }) => this.layout.places.get(number));
    const start = [from.x + CARD_WIDTH, from.y + from.height / 2 + this.edgeOffset(parent, node)];
    const end = [to.x, to.y + to.height / 2];
    const middle = (start[0] + end[0]) / 2;
    return svg("path", {
      d: `M${start}C${middle} ${start[1]} ${middle} ${end[1]} ${end}`,
      stroke: branchColour(node.branch),
      "stroke-width": this.edgeWidth(node).toFixed(1),
      class: "edge",
      "data-to": node.number,
    });
  }

  edgeWidth(node) {
    const [least, most] = EDGE_WIDTHS;
    return least + (most - least) * (node.rows / Math.max(this.model.nodes[0].rows, 1));
  }

  /** Edges leave a card side by side, in the order of the branches. */
  edgeOffset(parent, node) {
    const widths = parent.children.map((child) => this.edgeWidth(this.model.nodes[child]));
    const total = widths.reduce((sum, width) => sum + width, 0);
    const before = widths.slice(0, node.branch).reduce((sum, width) => sum + width, 0);
    return before + widths[node.branch] / 2 - total / 2;
  }

  drawItem(node) {
    const { x, y } = this.layout.places.get(node.number);
    const isFolded = this.folded.has(node.number);
    const siblings = node.parent === null ? [node.number] : this.model.nodes[node.parent].children;
    const card = drawCard(this.model, node);
    card.append(svg("path", { class: "marker", d: "M0 0l5 -8h-10z" }));
    if (!node.isLeaf) {
      const toggle = (event) => {
        event.stopPropagation();
        this.toggle(node.number);
      };
      card.append(drawFoldButton(this.model, node, isFolded, toggle));
    }
    return svg(
      "g",
      {
        transform: `translate(${x} ${y})`,
        role: "treeitem",
        "aria-level": node.depth + 1,
        "aria-posinset": siblings.indexOf(node.number) + 1,
        "aria-setsize": siblings.length,
        "aria-expanded": node.isLeaf ? null : String(!isFolded),
        "aria-label": nodeLabel(this.model, node),
        "data-node": node.number,
        tabindex: -1,
        onclick: () => this.open(node.number),
        onkeydown: (event) => this.onKey(event, node),
        onfocus: () => this.setFocused(node.number),
      },
      [card],
    );
  }

  /** Shows what has changed without drawing the tree again. */
  update() {
    const lit = new Set(this.path.map((node) => node.number));
    this.frame.classList.toggle("searching", this.found.size > 0);
    for (const edge of this.edges.children) {
      edge.classList.toggle("lit", lit.has(Number(edge.dataset.to)));
    }
    for (const edge of [...this.edges.children].filter((one) => one.classList.contains("lit"))) {
      this.edges.append(edge); // drawn last, so that none lies above
    }
    for (const [number, item] of this.cards) {
      item.tabIndex = number === this.focused ? 0 : -1;
      item.setAttribute("aria-selected", String(number === this.opened));
      item.classList.toggle("lit", lit.has(number));
      item.classList.toggle("opened", number === this.opened);
      item.classList.toggle("found", this.found.has(number));
      this.placeMarker(item.querySelector(".marker"), this.model.nodes[number], lit.has(number));
    }
  }

  placeMarker(marker, node, isLit) {
    const place = isLit && !node.isLeaf ? markRow(this.model, node, this.row, SMALL) : null;
    marker.classList.toggle("shown", place !== null);
    if (place === null) return;
    const figure = marker.parentNode.querySelector(".figure").getAttribute("transform");
    marker.setAttribute("transform", `${figure} translate(${place.x} ${place.y})`);
    marker.setAttribute(
      "d",
      place.isPoint ? "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0 -12 0z" : "M0 1l5 -8h-10z",
    );
    marker.classList.toggle("ring", Boolean(place.isPoint));
  }

  lightPath(path, row) {
    this.path = path;
    this.row = row;
    this.update();
  }

  // --- folding ---

  /** Folds or unfolds a node, which stays where it is on the screen. */
  toggle(number) {
    const before = this.cards.get(number).getBoundingClientRect();
    if (this.folded.has(number)) this.folded.delete(number);
    else this.folded.add(number);
    this.draw();
    const after = this.cards.get(number).getBoundingClientRect();
    this.zoom.moveBy(before.left - after.left, before.top - after.top);
  }

  unfoldAll() {
    this.folded.clear();
    this.draw();
    this.zoom.fit(this.size());
  }

  foldAll() {
    this.folded = foldingBelow(this.model, 1);
    this.draw();
    this.zoom.fit(this.size());
  }

  unfoldAbove(numbers) {
    const above = numbers.flatMap((number) => pathTo(this.model, number).slice(0, -1));
    const hiding = above.filter((node) => this.folded.has(node.number));
    for (const node of hiding) this.folded.delete(node.number);
    if (hiding.length) this.draw();
  }

  firstShownAbove(number) {
    return pathTo(this.model, number).findLast((node) => this.cards.has(node.number)).number;
  }

  // --- focus ---

  open(number) {
    this.opened = number;
    this.setFocused(number);
    this.onOpen(number);
  }

  close() {
    this.opened = null;
    this.update();
  }

  setFocused(number) {
    this.focused = number;
    this.update();
  }

  /** Moves the focus to a node, and the tree so that the node is seen. */
  focus(number) {
    this.show(number);
    this.setFocused(number);
    this.cards.get(number).focus({ preventScroll: true });
  }

  /** Makes a node visible, unfolding what hides it. */
  show(number) {
    this.unfoldAbove([number]);
    this.zoom.reveal(this.cards.get(number).getBoundingClientRect());
  }

  onKey(event, node) {
    const action = {
      Enter: () => this.open(node.number),
      " ": () => this.open(node.number),
      ArrowRight: () => this.goRight(node),
      ArrowLeft: () => this.goLeft(node),
      ArrowDown: () => this.goBy(node, 1),
      ArrowUp: () => this.goBy(node, -1),
      Home: () => this.focus(0),
      End: () => this.focus(this.shown.at(-1).number),
    }[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  goRight(node) {
    if (this.folded.has(node.number)) this.toggle(node.number);
    else if (!node.isLeaf) this.focus(node.children[0]);
  }

  goLeft(node) {
    if (!node.isLeaf && !this.folded.has(node.number)) this.toggle(node.number);
    else if (node.parent !== null) this.focus(node.parent);
  }

  goBy(node, step) {
    const next = this.shown[this.shown.indexOf(node) + step];
    if (next) this.focus(next.number);
  }

  // --- search ---

  /** Marks nodes; shows the first of them. */
  find(numbers) {
    this.found = new Set(numbers);
    this.unfoldAbove(numbers);
    this.update();
    if (numbers.length) this.show(numbers[0]);
  }
}

/** Unfolds the nodes with most rows first, as many as can be seen well. */
function firstFolding(model, room) {
  const folded = foldingBelow(model, 1);
  const byRows = [...folded].sort((one, other) => model.nodes[other].rows - model.nodes[one].rows);
  for (const number of byRows) {
    if (folded.has(model.nodes[number].parent)) continue;
    folded.delete(number);
    const { width, height } = layOut(model, folded);
    if (width * FIRST_SCALE > room.width || height * FIRST_SCALE > room.height) folded.add(number);
  }
  return folded;
}

function foldingBelow(model, depth) {
  const nodes = subtreeOf(model, model.nodes[0]);
  return new Set(
    nodes.filter((node) => node.depth >= depth && !node.isLeaf).map((node) => node.number),
  );
}
