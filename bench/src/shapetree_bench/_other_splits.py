"""Tables of few rows, and splits that are not random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from shapetree_bench._analysis import ERROR, OURS, OURS_WITH_PAIRS, Analysis, Entry
from shapetree_bench._datasets import BY_NAME, FEW_ROWS, NOT_RANDOM
from shapetree_bench._document import NOTHING, Cell, Table
from shapetree_bench._protocols import ANY_DEPTH

DEFAULTS, CART_OF_FEW_ROWS, LINEAR = "defaults", "CART, 10 rows a leaf", "linear"
_OF_FEW_ROWS = {DEFAULTS: "shape tree", CART_OF_FEW_ROWS: "CART", LINEAR: "linear"}
# The depth that is shown of splits that are not random.
DEPTH = 4
_OF_OTHER_SPLITS = {
    OURS: "shape tree, default",
    OURS_WITH_PAIRS: 'shape tree, pairs="auto"',
    ERROR: 'shape tree, objective="error"',
    "CART": "CART, Gini",
    "CART (entropy)": "CART, entropy",
}
_MEASURES = {"auc": ("AUC", 3, 1), "log_loss": ("log loss", 3, 1), "accuracy": ("accuracy", 1, 100)}


def few_rows(analysis: Analysis, task: str) -> dict[str, pd.DataFrame]:
    """What was measured on tables of few rows, by method, on those that all have."""
    found = {name: analysis.rows(Entry(name), ANY_DEPTH, is_random=False) for name in _OF_FEW_ROWS}
    names = [
        each.name
        for each in FEW_ROWS
        if each.task == task and all(each.name in rows.index for rows in found.values())
    ]
    return {name: rows.loc[names] for name, rows in found.items()} if names else {}


def few_rows_tables(analysis: Analysis) -> list[Table]:
    """Classification by AUC, log loss and accuracy; regression by R²."""
    tables = []
    found = few_rows(analysis, "classification")
    if found:
        head = ["table", "rows"] + [
            f"{title}: {who}" for title, _, _ in _MEASURES.values() for who in _OF_FEW_ROWS.values()
        ]
        rows: list[Sequence[Cell | str] | str] = []
        for name in found[DEFAULTS].index:
            rows.append([name, str(BY_NAME[name].rows), *_measures(found, name)])
        rows.append(["**mean**", "", *_measures(found, None)])
        caption = (
            "Two classes, four times 5-fold cross-validation. CART has depth 3 and ten rows a "
            "leaf; linear is logistic regression"
        )
        tables.append(Table([*head, "leaves"], rows, caption))
    found = few_rows(analysis, "regression")
    if found:
        rows = []
        for name in [*found[DEFAULTS].index, None]:
            cells = [f"{(1 - _value(each, name, 'squared_error')):.3f}" for each in found.values()]
            size = "" if name is None else str(BY_NAME[name].rows)
            rows.append([name or "**mean**", size, *cells])
        caption = (
            "Numbers, the same splits: R². CART has depth 3 and five rows a leaf; linear is ridge "
            "regression"
        )
        tables.append(Table(["table", "rows", *_OF_FEW_ROWS.values()], rows, caption))
    return tables


def _measures(found: dict[str, pd.DataFrame], name: str | None) -> list[Cell | str]:
    cells: list[Cell | str] = [
        f"{factor * _value(each, name, column):.{digits}f}"
        for column, (_, digits, factor) in _MEASURES.items()
        for each in found.values()
    ]
    return [*cells, f"{_value(found[DEFAULTS], name, 'leaves'):.1f}"]


def _value(rows: pd.DataFrame, name: str | None, column: str) -> float:
    return float(rows[column].mean() if name is None else rows.loc[name, column])


def other_splits_table(analysis: Analysis) -> Table | None:
    """What is left where rows of a group are kept together, or later rows are predicted."""
    rows: list[Sequence[Cell | str] | str] = []
    for dataset in NOT_RANDOM:
        block: list[Sequence[Cell | str]] = []
        for protocol, more in (("untuned", ""), ("cv", ', strength="cv"')):
            for method, label in _OF_OTHER_SPLITS.items():
                own = analysis.rows(Entry(method, protocol), DEPTH, is_random=False)
                if dataset.name not in own.index:
                    continue
                random = analysis.rows(Entry(method, protocol), DEPTH)
                is_there = dataset.file in random.index
                cells: list[Cell | str] = [label + more]
                for each, name, known in (
                    (random, dataset.file, is_there),
                    (own, dataset.name, True),
                ):
                    cells += [
                        f"{factor * each.loc[name, column]:.{digits}f}" if known else NOTHING
                        for column, (_, digits, factor) in reversed(_MEASURES.items())
                    ]
                cells.append(f"{own.loc[dataset.name, 'parts']:.1f}")
                block.append(cells)
        if block:
            rows += [_words(dataset.name), *block]
    titles = [title for title, _, _ in reversed(_MEASURES.values())]
    head = ["depth 4", *(f"at random: {title}" for title in titles)]
    head += [*(f"not at random: {title}" for title in titles), "parts per node"]
    return Table(head, rows, "The same rows, parted at random and otherwise") if rows else None


def _words(name: str) -> str:
    if "title" in name:
        return (
            "eye-movements: rows of a title have one label; not at random, all of them are on one "
            "side (5-fold, grouped by titleNo)"
        )
    return (
        "electricity: half-hours in order; not at random, trees learn from earlier rows and "
        "predict later ones (three splits in time order)"
    )


def headline(analysis: Analysis) -> list[str]:
    """What these tables show, in sentences."""
    return [*_line_on_few_rows(analysis), *_line_on_other_splits(analysis)]


def _line_on_few_rows(analysis: Analysis) -> Iterator[str]:
    found = few_rows(analysis, "classification")
    if not found:
        return
    numbers = [
        " / ".join(
            f"{factor * each[column].mean():.{digits}f}".removeprefix("0")
            for each in found.values()
        )
        for column, (_, digits, factor) in _MEASURES.items()
    ]
    sizes = [BY_NAME[name].rows for name in found[DEFAULTS].index]
    line = (
        f"**Few rows** ({len(sizes)} tables of {min(sizes)} to {max(sizes)}; shape tree / CART / "
        f"logistic regression): AUC {numbers[0]}, log loss {numbers[1]}, accuracy {numbers[2]} %"
    )
    regression = few_rows(analysis, "regression")
    r2 = [f"{1 - each['squared_error'].mean():.2f}" for each in regression.values()]
    if r2:
        line += f"; R² on {len(regression[DEFAULTS])} tables {' / '.join(r2)} (ridge regression)"
    yield f"{line}."


def _line_on_other_splits(analysis: Analysis) -> Iterator[str]:
    ours, cart = (
        analysis.rows(Entry(method), DEPTH, is_random=False)["accuracy"]
        for method in (OURS, "CART")
    )
    random = analysis.accuracy(Entry(OURS), DEPTH)
    pieces = []
    for dataset in NOT_RANDOM:
        name = dataset.name
        if name in ours.index and name in cart.index:
            at_random = (
                f", at random {random[dataset.file]:.0f} %" if dataset.file in random.index else ""
            )
            right, of_cart = 100 * ours[name], 100 * cart[name]
            pieces.append(f"{name} {right:.0f} % right{at_random} (CART {of_cart:.0f} %)")
    if pieces:
        yield f"**Not at random**, depth {DEPTH}: {'; '.join(pieces)}."
