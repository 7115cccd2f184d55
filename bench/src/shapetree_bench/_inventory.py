"""What there is: datasets, and what could not be done."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from shapetree_bench._analysis import Analysis, Entry
from shapetree_bench._datasets import BY_NAME
from shapetree_bench._document import Cell, Table


def dataset_table(analysis: Analysis) -> Table:
    """The datasets, as they were and as the paper had them."""
    rows: list[Sequence[Cell | str] | str] = []
    for each in analysis.evidence.datasets.sort_values("name").to_dict("records"):
        difference = "" if pd.isna(each["difference"]) else str(each["difference"])
        classes = str(int(each["classes"])) if each["classes"] else "a number"
        rows.append(
            [
                analysis.dataset_label(each["name"]),
                f"{int(each['rows']):,}",
                classes,
                str(int(each["columns"])),
                BY_NAME[each["name"]].source if each["name"] in BY_NAME else "",
                difference or "as in the paper",
            ]
        )
    head = ["dataset", "rows", "classes", "columns", "source", "compared with the paper"]
    return Table(head, rows)


def failure_table(analysis: Analysis) -> Table | None:
    """What could not be done, and why."""
    cells = analysis.evidence.cells
    failed = cells[cells["failed"] > 0]
    if failed.empty:
        return None
    rows: list[Sequence[Cell | str] | str] = []
    groups = failed.groupby(["method", "protocol", "dataset", "reason"])["depth"]
    for (method, protocol, dataset, reason), depths in groups:
        label = Entry(str(method), str(protocol)).label
        rows.append([label, str(dataset), ", ".join(map(str, sorted(depths))), str(reason)])
    return Table(["method", "dataset", "depths", "reason"], rows)
