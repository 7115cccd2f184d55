"""The card of a node that splits on categories."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from shapetree.data._columns import Level
from shapetree.plot._canvas import line_height
from shapetree.plot._card import TICK
from shapetree.plot._colours import DARK, FAINT, GREY, WHITE, blend
from shapetree.plot._layout import Box
from shapetree.plot._scene import Scene
from shapetree.plot._strip_card import StripCard
from shapetree.plot._text_width import clean, shorten, width
from shapetree.tree._view import NodeView
from shapetree.tree._words import category_name

LEAST_WIDTH = 170.0
MAX_BARS = 60  # categories that get a bar
SHORTEST = 4  # letters of a name that was cut and still says something


class CategoryCard(StripCard):
    """A node that splits on categories: bars, a strip, and the categories of each branch."""

    def __init__(self, scene: Scene, node: NodeView) -> None:
        super().__init__(scene, node, clean(node.features[0].name), node.density)
        categories = node.features[0].categories
        assert categories is not None
        assert node.density is not None
        self._code_of = {category: code for code, category in enumerate(categories)}
        self._n_rows = node.density.n_rows
        self.width = max(self.least_width, min(LEAST_WIDTH, self.style.max_width))
        self._by_branch = [self._in_order(segment.categories or ()) for segment in node.segments]
        self._slots = self._with_slots()
        self.draw_header()
        strip, self._step = self.strip, self.strip.width / max(len(self._slots), 1)
        left = strip.x0 + self._step * np.arange(len(self._slots))
        gap = min(self._step * 0.12, 2.0)
        cells = [np.array([self._code_of[category]]) for category, _ in self._slots]
        self.draw_density(np.stack([left + gap, left + self._step - gap], axis=1), cells)
        self._draw_strip()
        names, are_all_whole = self._names_below()
        for i, name in enumerate(names):
            middle = strip.x0 + (i + 0.5) * self._step
            self.text(middle, strip.y1 + 1, name, self.style.small, colour=GREY, align="center")
        has_line = self.shows_missing or bool(names)
        bottom = strip.y1 + (line_height(self.style.small) if has_line else TICK)
        # Where every category is named below its bar, that is enough.
        if not are_all_whole:
            bottom = self._draw_chips(bottom + 2) - 2
        self.draw_missing(strip.y0, strip.y1)
        self.mark_row()
        self.finish(bottom + self.style.pad - 3)

    def _rows_of(self, category: Level) -> int:
        return int(self._n_rows[self._code_of[category]])

    def _in_order(self, categories: tuple[Level, ...]) -> list[Level]:
        """Categories in their own order if they have one, or else the most frequent first."""
        if self.node.features[0].is_ordered:
            return sorted(categories, key=self._code_of.__getitem__)
        return sorted(categories, key=self._rows_of, reverse=True)

    def _with_slots(self) -> list[tuple[Level, int]]:
        """Categories that have a place on the strip, and their branches."""
        slots = [
            (category, branch)
            for branch, categories in enumerate(self._by_branch)
            for category in categories
            if self._rows_of(category)
        ]
        by_rows = sorted(slots, key=lambda slot: self._rows_of(slot[0]), reverse=True)
        frequent = set(by_rows[:MAX_BARS])
        slots = [slot for slot in slots if slot in frequent]
        if self.node.features[0].is_ordered:
            slots.sort(key=lambda slot: self._code_of[slot[0]])
        return slots

    def _draw_strip(self) -> None:
        strip, left = self.strip, self.strip.x0
        if not self._slots:
            self.rectangle(strip, FAINT)
        for branch, slots in groupby(self._slots, key=lambda slot: slot[1]):
            right = left + len(list(slots)) * self._step
            colour = self.scene.palette.branches[branch]
            self.rectangle(Box(left, strip.y0, right, strip.y1), colour)
            if left > strip.x0:
                self.line([(left, strip.y0), (left, strip.y1)], WHITE, 0.8)
            left = right

    def _names_below(self) -> tuple[list[str], bool]:
        """What is written below the bars, and whether that names all categories of all branches."""
        names = [_name(category) for category, _ in self._slots]
        labels = [shorten(name, self._step - 2, self.style.small) for name in names]
        if any(
            len(label) < SHORTEST and label != name
            for label, name in zip(labels, names, strict=True)
        ):
            return [], False
        n_categories = sum(map(len, self._by_branch))
        return labels, labels == names and len(names) == n_categories and all(self._by_branch)

    def _draw_chips(self, top: float) -> float:
        """The categories of each branch, in its colour; gives the place below them."""
        size, height = self.style.small, line_height(self.style.small) + 1
        for branch, categories in enumerate(self._by_branch):
            tint = blend(self.scene.palette.branches[branch], 0.72)
            for line in self._lines_of_chips(categories, branch):
                x = self.style.pad
                for word, is_category in line:
                    taken = width(word, size) + 5
                    if is_category:
                        self.rounded(Box(x, top, x + taken, top + height), tint, 2.5)
                    colour = DARK if is_category else GREY
                    self.text(x + 2.5, top + 0.5, word, size, colour=colour)
                    x += taken + 3
                top += height + 2
            top += 3
        return top

    def _lines_of_chips(self, categories: list[Level], branch: int) -> list[list[tuple[str, bool]]]:
        """Lines of words for the categories of a branch, and whether each is a category.

        The last may count those that there is no room for.
        """
        size, room = self.style.small, self.width - 2 * self.style.pad
        if not categories:
            return [[("only missing" if branch == self.node.missing_branch else "none", True)]]
        lines: list[list[tuple[str, bool]]] = [[]]
        used = 0.0
        for i, category in enumerate(categories):
            share = 0.48 if len(categories) > 1 else 0.96
            word = shorten(_name(category), room * share, size)
            left = len(categories) - i - 1
            spare = width(f"+{left} more", size) + 4 if left else 0.0
            need = width(word, size) + 8
            is_last_line = len(lines) == self.style.chip_lines
            if used + need + (spare if is_last_line else 0.0) > room and lines[-1]:
                if is_last_line:
                    lines[-1].append((f"+{left + 1} more", False))
                    break
                lines.append([])
                used = 0.0
            lines[-1].append((word, True))
            used += need
        return lines

    def place_of(self, value: Any) -> float:
        """The middle of a category's slot, or the end of its branch's part."""
        for i, (category, _) in enumerate(self._slots):
            if category == value:
                return self.strip.x0 + (i + 0.5) * self._step
        # No row here has this category, so it has no bar: point at its branch's part.
        branch = next(b for b, known in enumerate(self._by_branch) if value in known)
        mine = [i for i, slot in enumerate(self._slots) if slot[1] == branch]
        return self.strip.x0 + ((mine[-1] + 1) * self._step if mine else self.strip.width)


def _name(category: Level) -> str:
    return clean(category_name(category)) or "''"
