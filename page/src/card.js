/** A node's card in the tree. */

import { branchColour } from "./colours.js";
import { predictionWords, shortBranchWords } from "./conditions.js";
import { shorten, svg, svgText, textWidth } from "./dom.js";
import { drawShape, shapeHeight, SMALL } from "./figures/index.js";
import { drawShares, drawTargets } from "./figures/leaf.js";
import { scaleWords, subtreeOf, titleNames } from "./model.js";
import { countOf } from "./words.js";

const PADDING = 14;
const WAY_LINE = 17;
const WAY_SIZE = 11.5;
const TITLE_LINE = 19;
const TITLE_SIZE = 14;
const TITLE_WEIGHT = 650;
const LEAST_TITLE = 9;
const LEAF_FIGURE = { classes: 8, numbers: 22 };

export const CARD_WIDTH = SMALL.width + 2 * PADDING;

export function cardHeight(model, node) {
  const way = hasWay(node) ? WAY_LINE : 0;
  const figure = node.isLeaf ? leafFigure(model) : shapeHeight(node, SMALL);
  return 2 * PADDING - 3 + way + TITLE_LINE + 5 + figure;
}

const leafFigure = (model) => (model.classes ? LEAF_FIGURE.classes : LEAF_FIGURE.numbers);

/** Draws a card at the origin. */
export function drawCard(model, node) {
  const height = cardHeight(model, node);
  const parts = [svg("rect", { width: CARD_WIDTH, height, rx: 11, class: "card-box" })];
  let y = PADDING - 2;
  if (hasWay(node)) {
    parts.push(...drawWay(model, node, y));
    y += WAY_LINE;
  }
  parts.push(...drawTitle(model, node, y));
  y += TITLE_LINE + 5;
  parts.push(drawFigure(model, node, y));
  return svg("g", { class: node.isLeaf ? "card leaf" : "card" }, parts);
}

/** Whether a card has a line above its title; the root only needs it for its mark. */
const hasWay = (node) => node.parent !== null || Boolean(node.mark);

/** What leads here, beside a bar in the branch's colour. */
function drawWay(model, node, y) {
  const aside = asideOf(model, node);
  const parts = [];
  if (node.parent !== null) {
    const room = SMALL.width - 11 - (aside ? textWidth(aside, WAY_SIZE) + 8 : 0);
    const fits = (words) => textWidth(words, WAY_SIZE) <= room;
    const words = shortBranchWords(model.nodes[node.parent], node.branch, fits);
    const fill = branchColour(node.branch);
    parts.push(
      svg("rect", { x: PADDING, y: y + 1, width: 5, height: 12, rx: 2, fill }),
      svgText(words, { x: PADDING + 11, y: y + 11, width: room, size: WAY_SIZE, class: "muted" }),
    );
  }
  if (aside) {
    const place = { x: CARD_WIDTH - PADDING, y: y + 11, "text-anchor": "end" };
    parts.push(svgText(aside, { ...place, size: WAY_SIZE, class: "muted number" }));
  }
  return parts;
}

/**
 * What a leaf predicts besides the share of its rows, such as "weighted 84 %"; how many resamples
 * split on the same feature, such as "same in 44/50".
 */
function asideOf(model, node) {
  if (!node.isLeaf) return node.mark ? `same in ${node.mark}` : null;
  if (!model.classes) return null;
  return node.besideShare ?? null;
}

function drawTitle(model, node, y) {
  const rows = countOf(node.rows, "row");
  const room = SMALL.width - textWidth(rows, 11.5) - 12;
  const title = node.isLeaf ? leafTitle(model, node, room) : splitTitle(model, node);
  // A name is written smaller rather than cut, as long as it can be read.
  const need = textWidth(title, TITLE_SIZE, TITLE_WEIGHT) + 1;
  const size = Math.min(Math.max((TITLE_SIZE * room) / need, LEAST_TITLE), TITLE_SIZE);
  return [
    svgText(title, {
      x: PADDING,
      y: y + 14,
      width: room,
      size,
      weight: TITLE_WEIGHT,
      class: "card-title",
    }),
    svgText(rows, {
      x: CARD_WIDTH - PADDING,
      y: y + 14,
      size: 11.5,
      "text-anchor": "end",
      class: "muted number",
    }),
  ];
}

/** The prediction; a long name is cut, but not what follows it. */
function leafTitle(model, node, room) {
  const isShort = node.parent !== null; // the rest is beside what leads there
  return predictionWords(model, node, isShort, (name, rest) => {
    const free = room - textWidth(rest, TITLE_SIZE, TITLE_WEIGHT) - 1;
    return shorten(name, free, TITLE_SIZE, TITLE_WEIGHT);
  });
}

/** The features' names. */
function splitTitle(model, node) {
  return titleNames(model, node).join(" × ") + scaleWords(node);
}

function drawFigure(model, node, y) {
  const place = { transform: `translate(${PADDING} ${y})` };
  if (!node.isLeaf) return svg("g", { ...place, class: "figure" }, [drawShape(model, node, SMALL)]);
  const figure = model.classes
    ? drawShares(node, SMALL.width, LEAF_FIGURE.classes)
    : drawTargets(model, node, SMALL.width, LEAF_FIGURE.numbers);
  return svg("g", { ...place, class: "figure" }, [figure]);
}

/** The button at a card's right that folds or unfolds what is below. */
export function drawFoldButton(model, node, isFolded, onclick) {
  const leaves = subtreeOf(model, node).filter((below) => below.isLeaf).length;
  const text = isFolded ? `+${leaves}` : "–";
  const width = Math.max(20, textWidth(text, 11.5, 600) + 12);
  const place = `translate(${CARD_WIDTH - 4} ${cardHeight(model, node) / 2})`;
  return svg("g", { class: "fold", transform: place, "aria-hidden": "true", onclick }, [
    svg("rect", { x: 0, y: -10, width, height: 20, rx: 10 }),
    svg(
      "text",
      { x: width / 2, y: 4, "font-size": 11.5, "font-weight": 600, "text-anchor": "middle" },
      text,
    ),
    svg("title", {}, isFolded ? `Show ${leaves} leaves` : "Hide what is below"),
  ]);
}
