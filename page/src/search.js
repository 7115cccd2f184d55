/** Finding the nodes that use a feature. */

import { byId, html } from "./dom.js";
import { featureNames } from "./model.js";

export function setUpSearch(model, tree) {
  const box = byId("search");
  let last = { text: "", at: 0 };
  byId("feature-names").replaceChildren(
    ...model.used.map((feature) => html("option", { value: model.features[feature].name })),
  );
  box.addEventListener("input", () => {
    last = { text: box.value, at: 0 };
    tree.find(matches(model, box.value));
    report(box.value, tree.found.size);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && tree.found.size) {
      const found = [...tree.found];
      tree.focus(found[last.at % found.length]);
      last.at += 1;
    }
    if (event.key === "Escape") {
      event.stopPropagation();
      box.value = "";
      tree.find([]);
      report("", 0);
      box.blur();
    }
  });
}

function matches(model, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  return model.nodes
    .filter((node) => featureNames(model, node).some((name) => name.toLowerCase().includes(wanted)))
    .map((node) => node.number);
}

function report(text, n) {
  const words = n === 1 ? "1 node" : `${n || "no"} nodes`;
  byId("search-result").textContent = text.trim() ? words : "";
}
