/** A forest's panel: which of its trees to show, and the importances of its features. */

import { byId, html, nameText } from "./dom.js";
import { countOf, percent } from "./words.js";

const MOST_SHOWN = 12;

export function showForest(forest, trees, shown) {
  byId("forest").hidden = false;
  byId("forest-title").textContent = `Forest of ${countOf(forest.trees, "tree")}`;
  byId("forest-trees").replaceChildren(...trees.map((tree) => choice(tree, tree === shown)));
  const used = forest.importances.filter(([, share]) => share > 0);
  const rows = used
    .slice(0, MOST_SHOWN)
    .map(([name, share]) => importance(name, share, used[0][1]));
  const more = used.length - MOST_SHOWN;
  if (more > 0) rows.push(html("li", { class: "muted" }, `and ${countOf(more, "more feature")}`));
  byId("importances").replaceChildren(...rows);
  window.addEventListener("hashchange", () => location.reload());
}

function choice({ key, name }, isShown) {
  const current = isShown ? { "aria-current": "true" } : {};
  return html("li", {}, html("a", { href: `#${key}`, ...current }, name));
}

function importance(name, share, greatest) {
  const bar = html("span", { class: "share-bar" });
  bar.style.width = `${(100 * share) / greatest}%`;
  return html("li", {}, [
    html("span", { class: "share-name" }, nameText(name)),
    html("span", { class: "share-room", "aria-hidden": "true" }, bar),
    html("span", { class: "number" }, percent(share)),
  ]);
}
