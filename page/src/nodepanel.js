/** The panel with everything about one node. */

import { branchColour, classColour } from "./colours.js";
import { branchWords, childWords, predictionWords, sureWords } from "./conditions.js";
import { byId, html, nameText, svg } from "./dom.js";
import {
  addCounts,
  classCounts,
  grouped,
  joinMeans,
  missingCounts,
  missingRows,
  ownRows,
  showsMissing,
} from "./figures/bars.js";
import { drawShape, LARGE, shapeHeight } from "./figures/index.js";
import { drawTargets } from "./figures/leaf.js";
import { orderedParts } from "./figures/ordered.js";
import { featureNames, pathTo, scaleWords, titleNames } from "./model.js";
import { countOf, percent } from "./words.js";

const LEAF_HEIGHT = 110;

export function showNode(model, number, onOpen) {
  const node = model.nodes[number];
  byId("node-title").replaceChildren(...title(model, node));
  byId("node-facts").textContent = facts(model, node);
  byId("node-body").replaceChildren(
    ...(node.isLeaf ? leafBody(model, node) : splitBody(model, node, onOpen)),
    ...way(model, node, onOpen),
  );
  byId("node").hidden = false;
  // Beside the tree the panel scrolls by itself; below it, with the page.
  byId("node").parentNode.scrollTop = 0;
  byId("node").scrollIntoView({ block: "nearest" });
}

export function hideNode() {
  byId("node").hidden = true;
}

function title(model, node) {
  if (node.isLeaf) return ["Leaf: ", nameText(predictionWords(model, node))];
  const names = titleNames(model, node).map((name) => nameText(name));
  return names.length === 2 ? [names[0], " × ", names[1]] : [names[0], scaleWords(node)];
}

function facts(model, node) {
  const all = model.nodes[0].rows;
  const share = node.parent === null || !all ? "" : `, ${percent(node.rows / all)} of all`;
  const here = node.isLeaf ? "" : ` · as a leaf it would predict ${predictionWords(model, node)}`;
  const sure = sureWords(node).map((words) => ` · ${words}`);
  return `${countOf(node.rows, "row")}${share}${here}${sure.join("")}`;
}

// --- a node that splits ---

function splitBody(model, node, onOpen) {
  const height = shapeHeight(node, LARGE);
  const label = `Shape function of ${featureNames(model, node).join(" and ")}`;
  const picture = svg(
    "svg",
    {
      viewBox: `-2 -4 ${LARGE.width + 4} ${height + 8}`,
      class: "large",
      role: "group",
      "aria-label": label,
    },
    [drawShape(model, node, LARGE)],
  );
  return [picture, shapeTable(model, node, onOpen)];
}

function shapeTable(model, node, onOpen) {
  const rows = tableRows(model, node).map(({ content, branch, rows: count }) =>
    html("tr", {}, [
      html("td", { class: "values", dir: "auto" }, content),
      html("td", { dir: "auto" }, count),
      html("td", {}, branchButton(model, node, branch, onOpen)),
    ]),
  );
  const heads = node.regions
    ? ["Region", "Rows in the region", "Branch: all its rows"]
    : ["Values", "Rows with these values", "Branch: all its rows"];
  return tableOf(heads, rows);
}

function tableRows(model, node) {
  const rows = node.regions
    ? regionRows(model, node)
    : node.segments[0].codes
      ? categoryRows(model, node)
      : orderedParts(model, node).map(({ words, branch, counts, mean }) => ({
          content: words,
          branch,
          rows: ownRows(model, node, branch, counts, mean),
        }));
  if (showsMissing(node)) {
    const branch = node.missingBranch;
    const count = node.regions
      ? grouped(missingRows(node))
      : ownRows(model, node, branch, missingCounts(node), node.density.missingMean);
    rows.push({ content: "missing", branch, rows: count });
  }
  return rows;
}

/** Rows of a region are known only where it is the only way to its branch. */
function regionRows(model, node) {
  return node.joined.map((region) => {
    const isOnly = node.joined.filter(({ branch }) => branch === region.branch).length === 1;
    const child = model.nodes[node.children[region.branch]];
    const known = isOnly && !(showsMissing(node) && node.missingBranch === region.branch);
    const rows = known ? grouped(child.rows) : "not counted";
    return { content: region.words, branch: region.branch, rows };
  });
}

function categoryRows(model, node) {
  const { categories } = model.features[node.features[0]];
  const known = node.segments.filter(({ codes }) => codes.length > 0);
  return known.map(({ branch, codes }) => ({
    content: html(
      "div",
      { class: "chips" },
      codes.map((code) => nameText(categories[code], "chip")),
    ),
    branch,
    rows: ownRows(
      model,
      node,
      branch,
      addCounts(codes.map((code) => classCounts(model, node, code))),
      joinMeans(node, codes),
    ),
  }));
}

function branchButton(model, node, branch, onOpen) {
  const swatch = html("span", { class: "swatch" });
  swatch.style.background = branchColour(branch);
  const attributes = {
    type: "button",
    class: "branch",
    title: "Open its node",
  };
  return html("button", { ...attributes, onclick: () => onOpen(node.children[branch]) }, [
    swatch,
    html("span", { dir: "auto" }, `${branch + 1}: ${childWords(model, node, branch)}`),
  ]);
}

// --- a leaf ---

function leafBody(model, node) {
  if (model.classes) return [classTable(model, node)];
  const [low, high] = model.targets.labels;
  const picture = svg(
    "svg",
    {
      viewBox: `-2 -6 ${LARGE.width + 4} ${LEAF_HEIGHT + 30}`,
      class: "large",
      role: "img",
      "aria-label": `How the target is spread here: ${predictionWords(model, node)}`,
    },
    [
      drawTargets(model, node, LARGE.width, LEAF_HEIGHT),
      endLabel(low, 0, "start"),
      endLabel(high, LARGE.width, "end"),
    ],
  );
  return [picture];
}

function endLabel(text, x, anchor) {
  const attributes = { x, y: LEAF_HEIGHT + 17, "font-size": 12, "text-anchor": anchor };
  return svg("text", { ...attributes, class: "muted number" }, text);
}

/** Rows of each class, and what the tree predicts, where that is not the rows' share. */
function classTable(model, node) {
  const all = model.classes
    .map((name, number) => ({
      name,
      number,
      rows: node.counts[number],
      share: percent(node.counts[number] / Math.max(node.rows, 1)),
      predicted: percent(node.value[number]),
    }))
    .filter(({ number, rows }) => node.value[number] > 0 || rows > 0 || model.classes.length <= 8);
  const isAlike = all.every(({ share, predicted }) => share === predicted);
  const rows = all.map(({ name, number, share, rows: count, predicted }) => {
    const swatch = html("span", { class: "swatch" });
    swatch.style.background = classColour(number);
    const cells = [grouped(count), share, ...(isAlike ? [] : [predicted])];
    return html("tr", {}, [
      html("td", {}, html("span", { class: "labelled" }, [swatch, nameText(name)])),
      ...cells.map((cell) => html("td", { class: "number" }, cell)),
    ]);
  });
  const word = model.predictedWord;
  const predicted = isAlike ? [] : [word[0].toUpperCase() + word.slice(1)];
  return tableOf(["Class", "Rows in this leaf", "Share", ...predicted], rows, { class: "classes" });
}

function tableOf(heads, rows, attributes = {}) {
  const cells = heads.map((head) => html("th", { scope: "col" }, head));
  return html("table", attributes, [
    html("thead", {}, html("tr", {}, cells)),
    html("tbody", {}, rows),
  ]);
}

// --- how rows get there ---

function way(model, node, onOpen) {
  if (node.parent === null) return [];
  const path = pathTo(model, node.number);
  const steps = path.slice(1).map((step, i) => {
    const parent = path[i];
    const words = branchWords(parent, step.branch);
    const swatch = html("span", { class: "swatch" });
    swatch.style.background = branchColour(step.branch);
    const name = featureNames(model, parent).join(" × ");
    const link = html(
      "button",
      { type: "button", class: "link", onclick: () => onOpen(parent.number) },
      nameText(name),
    );
    return html("li", {}, [
      swatch,
      html("span", {}, [link, html("span", { class: "muted", dir: "auto" }, ` ${words}`)]),
    ]);
  });
  return [html("h3", {}, "How rows get here"), html("ol", { class: "way" }, steps)];
}
