/** Trying out a row: its values, what is predicted for it and why, and what would change that. */

import { classColour } from "./colours.js";
import { sureWords } from "./conditions.js";
import { inputValue, nearMoment, readMoment } from "./dates.js";
import { byId, html, nameText, textWidth } from "./dom.js";
import { beyondWords, explainRow } from "./explain.js";
import { isCategorical } from "./model.js";
import { pathOf } from "./predict.js";
import { rangeOf, typicalRow } from "./typical.js";
import { listing, percent } from "./words.js";

const MAX_BARS = 8;
const SLIDER_STEPS = 200;
// Letters in a field, and the room that they have beside the name of a feature.
const FIELD_FONT = 16;
const FIELD_ROOM = 108;

/** Fills the panel; `onPath` learns the path of every row that is tried. */
export function setUpWhatIf(model, onPath) {
  const start = typicalRow(model);
  const kept = new Set();
  let row = [...start];
  const update = () => {
    const path = pathOf(model, row);
    showOutcome(model, path.at(-1));
    showReasons(model, row, kept);
    for (const field of fields) field.mark(beyondWords(model, field.feature, row[field.feature]));
    onPath(path, row);
  };
  const fields = byFirstUse(model).map((feature) =>
    makeField(
      model,
      feature,
      (value) => {
        row[feature] = value;
        update();
      },
      (isKept) => {
        if (isKept) kept.add(feature);
        else kept.delete(feature);
        update();
      },
    ),
  );
  const reset = () => {
    row = [...start];
    for (const field of fields) field.set(row[field.feature]);
    update();
  };
  byId("inputs").replaceChildren(...fields.map((field) => field.element));
  byId("reset").addEventListener("click", reset);
  byId("values").hidden = fields.length === 0;
  reset();
}

/** Features in use, those nearest to the root first. */
function byFirstUse(model) {
  const nodes = [...model.nodes].sort((one, other) => one.depth - other.depth);
  return [...new Set(nodes.flatMap((node) => node.features))];
}

// --- inputs ---

function makeField(model, feature, onChange, onKeep) {
  const info = model.features[feature];
  const id = `feature-${feature}`;
  const label = html("label", { for: id }, nameText(info.name + zoneOf(info)));
  const note = html("p", { class: "beyond", role: "status" });
  const control = isCategorical(info)
    ? categoryControl(info, id, onChange)
    : numberControl(model, feature, id, onChange);
  const head = html("div", { class: "field-head" }, [label, keepControl(info.name, onKeep)]);
  const element = html("div", { class: "field" }, [head, ...control.elements, note]);
  element.classList.toggle("has-long-names", hasLongNames(info));
  const mark = (words) => {
    note.textContent = words ?? "";
    note.hidden = words === null;
    element.classList.toggle("outside", words !== null);
  };
  return { feature, element, set: control.set, mark };
}

/** Whether categories have names that do not fit beside the feature's. */
const hasLongNames = ({ categories }) =>
  (categories ?? []).some((name) => textWidth(name, FIELD_FONT) > FIELD_ROOM);

const zoneOf = ({ date }) => (date === "utc" ? " (UTC)" : "");

/** A box that keeps a value out of the changes that are proposed. */
function keepControl(name, onKeep) {
  const box = html("input", { type: "checkbox", "aria-label": `Keep ${name} as it is` });
  box.addEventListener("change", () => onKeep(box.checked));
  return html("label", { class: "keep", title: "Do not suggest changing this value" }, [
    box,
    "keep",
  ]);
}

function categoryControl(info, id, onChange) {
  const options = info.categories.map((name, code) => html("option", { value: code }, name));
  const select = html("select", { id, dir: "auto" }, [
    html("option", { value: "" }, "missing or new"),
    html("hr"),
    ...options,
  ]);
  select.addEventListener("change", () =>
    onChange(select.value === "" ? null : Number(select.value)),
  );
  return {
    elements: [select],
    set: (code) => {
      select.value = code ?? "";
    },
  };
}

function numberControl(model, feature, id, onChange) {
  const info = model.features[feature];
  const [low, high] = rangeOf(model, feature);
  const { box, show, read } = info.date ? dateBox(info, id) : numberBox(id);
  const slider = html("input", {
    type: "range",
    min: 0,
    max: SLIDER_STEPS,
    step: "any",
    "aria-label": `${info.name}, slider`,
  });
  const showOnSlider = (value) => {
    if (value !== null)
      slider.value = ((value / 2 - low / 2) / (high / 2 - low / 2)) * SLIDER_STEPS;
    slider.classList.toggle("missing", value === null);
  };
  box.addEventListener("input", () => {
    const value = read();
    showOnSlider(value);
    onChange(value);
  });
  slider.addEventListener("input", () => {
    const value = fromSlider(Number(slider.value) / SLIDER_STEPS, low, high, info);
    show(value);
    slider.classList.remove("missing");
    onChange(value);
  });
  return {
    elements: [box, slider],
    set: (value) => {
      show(value);
      showOnSlider(value);
    },
  };
}

function numberBox(id) {
  const box = html("input", { id, type: "number", step: "any", placeholder: "missing" });
  return {
    box,
    show: (value) => {
      box.value = value ?? "";
    },
    read: () => (box.value === "" ? null : box.valueAsNumber),
  };
}

/** An input for dates, or for dates and times of day; empty where the date is missing. */
function dateBox({ date }, id) {
  const type = date === "day" ? "date" : "datetime-local";
  const box = html("input", { id, type, step: date === "day" ? 1 : "any" });
  return {
    box,
    show: (value) => {
      box.value = value === null ? "" : inputValue(value, date);
    },
    read: () => (box.value === "" ? null : readMoment(box.value)),
  };
}

/** A value with as many digits as the slider can tell apart. */
function fromSlider(share, low, high, { whole, date }) {
  const value = (1 - share) * low + share * high;
  if (date) return nearMoment(value, high - low, date);
  if (whole) return Math.round(value);
  const decimals = Math.min(Math.max(2 - Math.floor(Math.log10(high / 2 - low / 2)), 0), 20);
  return Number.isFinite(value) && Math.abs(value) < 1e15 ? Number(value.toFixed(decimals)) : value;
}

// --- results ---

function showOutcome(model, leaf) {
  const heading = model.classes ? model.classes[leaf.predicted] : leaf.numberWords;
  byId("outcome").replaceChildren(nameText(heading));
  byId("chances").replaceChildren(...(model.classes ? chances(model, leaf) : [spread(leaf)]));
}

function chances(model, leaf) {
  const ranked = leaf.value.map((share, number) => ({ share, number }));
  const shown =
    model.classes.length <= MAX_BARS
      ? ranked
      : ranked.sort((one, other) => other.share - one.share).slice(0, MAX_BARS);
  const rest = 1 - shown.reduce((sum, { share }) => sum + share, 0);
  const bars = shown.map(({ share, number }) => {
    const fill = html("span", { class: "fill" });
    fill.style.width = `${100 * share}%`;
    fill.style.background = classColour(number);
    return html("li", { class: number === leaf.predicted ? "chance best" : "chance" }, [
      nameText(model.classes[number]),
      html("span", { class: "bar" }, fill),
      html("span", { class: "number" }, percent(share)),
    ]);
  });
  const others = model.classes.length - shown.length;
  if (leaf.rows > 0) bars.push(html("li", { class: "muted" }, rowsBehind(model, leaf)));
  if (others > 0)
    bars.push(html("li", { class: "muted" }, `${others} others: ${percent(Math.max(rest, 0))}`));
  return bars;
}

/** The rows' share and how sure it is, and what the bars are, where they are not such shares. */
function rowsBehind(model, leaf) {
  const rows = `${leaf.shortShare} of the rows here are ${model.classes[leaf.predicted]}`;
  const isRows = leaf.share === percent(leaf.value[leaf.predicted]);
  const bars = isRows ? [] : [`the bars show ${model.predictedWord} probabilities`];
  return [rows, ...sureWords(leaf), ...bars].join("; ");
}

function spread(leaf) {
  const words = [leaf.spreadWords.trim(), ...sureWords(leaf)].filter(Boolean).join("; ");
  return html("li", { class: "muted" }, words);
}

function showReasons(model, row, kept) {
  const mayChange = (feature) => !kept.has(feature);
  const { sentence, flip, notes } = explainRow(model, row, { mayChange });
  const note = notes.length ? ` Note: ${listing(notes)}.` : "";
  byId("sentence").textContent = `${sentence}.${note}`;
  byId("flip").hidden = model.used.length === 0;
  byId("flip").textContent = flip === null ? nothingFlips(kept) : `${flip}.`;
}

function nothingFlips(kept) {
  const which = kept.size ? "the other values" : "the values";
  return `No change of one or two of ${which} to what training has seen would change that.`;
}
