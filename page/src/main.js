/** Puts the page together. */

import { branchColour, classColour, targetGradient, useColours } from "./colours.js";
import { byId, html, nameText } from "./dom.js";
import { explainRow } from "./explain.js";
import { showForest } from "./forest.js";
import { readModel } from "./model.js";
import { hideNode, showNode } from "./nodepanel.js";
import { leafOf, newCategories, readRow } from "./predict.js";
import { setUpPrint } from "./print.js";
import { setUpSearch } from "./search.js";
import { setUpTheme } from "./theme.js";
import { hideTooltip } from "./tooltip.js";
import { Tree } from "./tree.js";
import { setUpWhatIf } from "./whatif.js";
import { countOf } from "./words.js";

const data = JSON.parse(byId("tree-data").textContent);
const shown = data.shown?.find(({ key }) => location.hash === `#${key}`) ?? data.shown?.[0];
const model = readModel(shown?.model ?? data);

useColours(model.colours);
setUpTheme();
showHeader();
showLegend();
const tree = new Tree(model, (number) => showNode(model, number, openNode));
setUpWhatIf(model, (path, row) => tree.lightPath(path, row));
setUpSearch(model, tree);
setUpPrint(tree);
if (data.forest) showForest(data.forest, data.shown, shown);
setUpButtons();
setUpKeys();
window.shapetree = { predict, explain };

/** What the tree predicts for a row, given by the names of its features. */
function predict(named) {
  const leaf = leafOf(model, readRow(model, named));
  return {
    leaf: leaf.number,
    prediction: model.classes ? model.classes[leaf.predicted] : leaf.value[0],
    probabilities: model.classes ? leaf.value : null,
  };
}

/** The sentence for a row, the one on what would change its prediction, and what is unlike training. */
function explain(named) {
  const row = readRow(model, named);
  return explainRow(model, row, { newValues: newCategories(model, named, row) });
}

function showHeader() {
  byId("title").textContent = model.title;
  byId("title").title = model.title;
  const root = model.nodes[0];
  const leaves = model.nodes.filter((node) => node.isLeaf).length;
  const depth = Math.max(...model.nodes.map((node) => node.depth));
  const facts = [
    model.isTraining ? countOf(root.rows, "training row") : `${countOf(root.rows, "row")} given`,
    leaves === 1 ? "1 leaf" : `${leaves.toLocaleString("en-US")} leaves`,
    `depth ${depth}`,
  ];
  facts.unshift(...model.scores.map(capitalised));
  if (model.target !== null) facts.unshift(`Predicts ${model.target}`);
  byId("why").hidden = model.whySingleLeaf === null;
  byId("why").textContent = model.whySingleLeaf === null ? "" : `${model.whySingleLeaf}.`;
  byId("facts").replaceChildren(...facts.map((fact) => html("li", { dir: "auto" }, fact)));
}

function capitalised(words) {
  return words[0].toUpperCase() + words.slice(1);
}

function showLegend() {
  const bars = model.classes
    ? model.classes.map((name, number) => legendItem(classColour(number), name))
    : [
        html("li", {}, [html("span", { class: "swatch target" }), "rows"]),
        html("li", {}, [
          html("span", { class: "swatch line" }),
          "mean target, or a leaf’s prediction",
        ]),
        html("li", {}, "± standard deviation of the rows"),
        ...(model.nodes.some((node) => node.plane) ? [targetLegend()] : []),
      ];
  const most = Math.max(...model.nodes.map((node) => node.children.length));
  const branches = Array.from({ length: most }, (_, i) =>
    legendItem(branchColour(i), String(i + 1)),
  );
  byId("legend").replaceChildren(
    ...(most ? [html("li", { class: "group" }, "Branches"), ...branches] : []),
    html("li", { class: "group" }, model.classes ? (model.target ?? "Classes") : "Bars"),
    ...bars,
  );
}

/** What the colours of points mean. */
function targetLegend() {
  const [low, high] = model.targets.labels;
  const scale = html("span", { class: "swatch scale" });
  scale.style.background = targetGradient();
  return html("li", {}, [`${model.target ?? "target"} ${low}`, scale, high]);
}

function legendItem(colour, name) {
  const swatch = html("span", { class: "swatch" });
  swatch.style.background = colour;
  return html("li", {}, [swatch, nameText(name)]);
}

function openNode(number) {
  tree.show(number);
  tree.open(number);
}

function closeNode() {
  if (byId("node").hidden) return;
  const hadFocus = byId("node").contains(document.activeElement);
  const { opened } = tree;
  hideNode();
  tree.close();
  if (hadFocus) tree.focus(opened);
}

function setUpButtons() {
  byId("zoom-in").addEventListener("click", tree.zoom.zoomIn);
  byId("zoom-out").addEventListener("click", tree.zoom.zoomOut);
  byId("fit").addEventListener("click", () => tree.zoom.fit(tree.size()));
  byId("unfold").addEventListener("click", () => tree.unfoldAll());
  byId("fold").addEventListener("click", () => tree.foldAll());
  byId("close").addEventListener("click", closeNode);
}

function setUpKeys() {
  const actions = {
    "+": tree.zoom.zoomIn,
    "=": tree.zoom.zoomIn,
    "-": tree.zoom.zoomOut,
    0: () => tree.zoom.fit(tree.size()),
    "/": () => byId("search").focus(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      hideTooltip();
      closeNode();
      return;
    }
    const isTyping = event.target.closest?.("input, select, textarea");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });
}
