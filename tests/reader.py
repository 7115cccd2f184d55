"""Reads the words for conditions back, as somebody would who knows nothing of the tree."""

import re
import sys

import numpy as np

NUMBER = r"-?(?:\d+(?:\.\d+)?(?:e-?\d+)?|inf)"
SIGNS = {"≤": np.less_equal, "<": np.less, "≥": np.greater_equal, ">": np.greater, "=": np.equal}


class Rows:
    """Rows as their conditions see them.

    Parameters
    ----------
    features : sequence of FeatureInfo
    columns : dict
        Values by name; None or NaN where one is missing.
    """

    def __init__(self, features, columns):
        self.features = {feature.name: feature for feature in features}
        self._values, self._known, self._members = {}, {}, {}
        for name, feature in self.features.items():
            values = columns[name]
            if feature.categories is None:
                self._values[name] = np.array(values, dtype=float)
                self._known[name] = ~np.isnan(self._values[name])
                continue
            is_one = {
                category: np.array([value == category for value in values])
                for category in feature.categories
            }
            self._known[name] = np.any(list(is_one.values()), axis=0)
            self._members |= {(name, str(category)): held for category, held in is_one.items()}

    def __len__(self):
        return len(next(iter(self._known.values())))

    def known(self, name):
        return self._known[name]

    def among(self, name, categories):
        held = [self._members[name, category] for category in categories]
        return np.any(held, axis=0) if held else np.zeros(len(self), dtype=bool)

    def total(self, names, weights):
        """A feature's numbers, or a weighted sum of two, in which infinite ones are finite."""
        if len(names) == 1:
            return self._values[names[0]]
        limit = sys.float_info.max
        u, v = (np.clip(self._values[name], -limit, limit) for name in names)
        with np.errstate(over="ignore"):
            return weights[0] * u + weights[1] * v


def one_of(words):
    return "(?:" + "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)) + ")"


class Reader:
    """Reads conditions on features; their names and categories must not be part of the grammar.

    Parameters
    ----------
    rows : Rows
        For which to tell whether they satisfy what is read.
    """

    def __init__(self, rows):
        self._rows = rows
        self._names = []  # of what was read in the last parentheses
        features = rows.features.values()
        categories = [str(c) for feature in features for c in feature.categories or ()]
        name, category = one_of(rows.features), one_of(categories or ["?"])
        braces = rf"\{{(?P<braces>(?:{category}(?:, )?)*)\}}"
        others = rf"\{{(?P<others>(?:{category}(?:, )?)*)\}}"
        self._condition = re.compile(
            rf"(?P<name>{name})(?: (?P<plus>[+-]) (?P<weight>{NUMBER})·(?P<second>{name}))?"
            rf" (?:(?P<sign>[≤<≥>=]) (?P<number>{NUMBER})(?![\w.])"
            rf"|in (?P<start>[\[(])(?P<low>{NUMBER}), (?P<high>{NUMBER})(?P<end>[\])])"
            rf"|= (?P<category>{category})(?![\w.])|in {braces}"
            rf"|is known but (?:not (?P<other>{category})(?![\w.])|none of {others})"
            r"|is (?P<state>known|missing(?: or new)?))"
        )

    def sentence(self, text):
        """Which rows satisfy the reasons of a sentence, and whether it speaks of sums."""
        held, at, has_sums = np.ones(len(self._rows), dtype=bool), 0, False
        while True:
            more, at, is_sum = self._read_condition(text, at)
            held, has_sums = held & more, has_sums or is_sum
            if at == len(text):
                return held, has_sums
            separator = re.compile(r", | and ").match(text, at)
            assert separator, text[at:]
            at = separator.end()

    def premise(self, text):
        """Which rows satisfy the premise of a rule."""
        if text in ("every row", "never"):
            return np.full(len(self._rows), text == "every row")
        held, at = self._read_any_of(text, 0)
        assert at == len(text), text[at:]
        return held

    def _read_any_of(self, text, at):
        self._names = []
        held, at = self._read_all_of(text, at)
        while text.startswith(" or ", at):
            at += len(" or ")
            if self._condition.match(text, at) or text[at] == "(":
                more, at = self._read_all_of(text, at)
            else:
                # The name goes without saying where all is about one feature.
                (name,) = set(self._names)
                verb = "is " if text.startswith(("missing", "known"), at) else ""
                lead = f"{name} {verb}"
                more, end, _ = self._read_condition(lead + text[at:], 0)
                at += end - len(lead)
            held = held | more
        return held, at

    def all_of(self, text):
        """Which rows satisfy conditions that are joined by "and"."""
        held, at = self._read_all_of(text, 0)
        assert at == len(text), text[at:]
        return held

    def _read_all_of(self, text, at):
        held, at = self._read_part(text, at)
        while text.startswith(" and ", at):
            more, at = self._read_part(text, at + len(" and "))
            held = held & more
        return held, at

    def _read_part(self, text, at):
        if text.startswith("never", at):
            return np.zeros(len(self._rows), dtype=bool), at + len("never")
        if text[at] != "(":
            return self._read_condition(text, at)[:2]
        held, at = self._read_any_of(text, at + 1)
        assert text[at] == ")", text[at:]
        return held, at + 1

    def _read_condition(self, text, at):
        found = self._condition.match(text, at)
        assert found, text[at:]
        names, weights = [found["name"]], [1.0]
        if found["second"]:
            names.append(found["second"])
            weights.append(float(found["weight"]) * (-1 if found["plus"] == "-" else 1))
        self._names += names
        known = np.all([self._rows.known(name) for name in names], axis=0)
        if found["state"] and found["state"].startswith("missing"):
            says_new = self._rows.features[names[0]].is_categorical
            assert found["state"] == "missing" + " or new" * says_new
            held = ~known
        else:
            held = known & self._read_values(found, names, weights)
        return held, found.end(), len(names) == 2

    def _read_values(self, found, names, weights):
        """What is said of values that are known."""
        if found["state"]:
            return True
        if found["category"] or found["other"]:
            held = self._rows.among(names[0], [found["category"] or found["other"]])
            return held if found["category"] else ~held
        for part in ("braces", "others"):
            if found[part] is not None:
                categories = found[part].split(", ") if found[part] else []
                held = self._rows.among(names[0], categories)
                return held if part == "braces" else ~held
        if names[0] not in self._rows._values:
            return self._rows.among(names[0], [found["number"]])  # a category like 3
        total = self._rows.total(names, weights)
        if found["sign"]:
            return SIGNS[found["sign"]](total, float(found["number"]))
        above = SIGNS[">" if found["start"] == "(" else "≥"](total, float(found["low"]))
        below = SIGNS["<" if found["end"] == ")" else "≤"](total, float(found["high"]))
        return above & below


class TextReader:
    """Reads `export_text` back and sends rows through it.

    Parameters
    ----------
    text : str
    rows : Rows
    features : dict
        By what a line says it splits on, the names of its features.
    """

    LINE = re.compile(
        r"(?P<indent>[ │]*)(?:[├└]─ (?P<condition>.*?): )?(?P<content>.*)  \[(?P<n>.*)\]"
    )

    def __init__(self, text, rows, features):
        self._rows, self._reader, self._features = rows, Reader(rows), features
        self.outcomes, self._children, stack = [], [], []
        for number, line in enumerate(text.splitlines()):
            found = self.LINE.fullmatch(line)
            depth = len(found["indent"]) // 3 + (found["condition"] is not None)
            self.outcomes.append(found["content"])
            self._children.append([])
            stack = [*stack[:depth], number]
            if depth:
                n_rows = int(found["n"].split()[0].replace(",", ""))
                self._children[stack[-2]].append((found["condition"], n_rows, number))

    def lines(self):
        """Number of the line that each row ends in."""
        at = np.zeros(len(self._rows), dtype=int)
        for number, children in enumerate(self._children):
            here = at == number
            if not children:
                continue
            names = self._features[self.outcomes[number]]
            held = [self._condition(condition, names) for condition, _, _ in children]
            # Missing values that are not mentioned go to the branch with the most rows.
            largest = int(np.argmax([n_rows for _, n_rows, _ in children]))
            known = np.all([self._rows.known(name) for name in names], axis=0)
            if not any("missing" in condition for condition, _, _ in children):
                held[largest] = held[largest] | ~known
            assert (np.sum(held, axis=0)[here] == 1).all(), [c for c, _, _ in children]
            for (_, _, child), its in zip(children, held, strict=True):
                at[here & its] = child
        return at

    def _condition(self, text, names):
        known = np.all([self._rows.known(name) for name in names], axis=0)
        held = np.zeros(len(self._rows), dtype=bool)
        if text == "no values":
            return held
        text = text.replace("missing or new", "missing").replace("either missing", "missing")
        for part in text.split(" or "):
            if part == "missing":
                held |= ~known
            elif len(names) == 2:
                # Regions are of rows that have both.
                held |= self._reader.all_of(part[1:-1] if part[0] == "{" else part) & known
            elif names[0] in self._rows._values:
                held |= self._reader.all_of(
                    f"{names[0]} is known"
                    if part == "any number"
                    else f"{names[0]} {'in ' * (part[0] in '([')}{part}"
                )
            else:
                held |= self._rows.among(names[0], part.split(", "))
        return held
