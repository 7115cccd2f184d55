"""`shapetree inspect`: what a model file contains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np

from shapetree import SearchOptions, export_text
from shapetree.cli._model import Tree, outcome, read_model
from shapetree.cli._options import Model, Option
from shapetree.cli._problems import listed
from shapetree.cli._voice import Head, Voice
from shapetree.data._table import FeatureInfo
from shapetree.explain import Rule
from shapetree.tree._digits import percent, rounded
from shapetree.tree._fitted import fitted_tree
from shapetree.tree._view import TreeView, view_of


def inspect(
    voice: Voice,
    model: Model,
    rules: Annotated[bool, Option("Add the tree as if/then rules.", ("--rules",))] = False,
    tree: Annotated[bool, Option("Add the whole tree as text.", ("--tree",))] = False,
) -> None:
    """Show what a model file contains.

    Lists its features, classes, size and parameters, and on request its rules.

    For example:
      shapetree inspect model.json
      shapetree inspect model.json --rules
      shapetree inspect model.json --tree | less
    """
    estimator = read_model(model)
    view = view_of(fitted_tree(estimator))
    _show_summary(model, estimator, view, voice)
    _show_features(estimator, view, voice)
    if tree:
        voice.heading("Tree")
        voice.lines(export_text(estimator))
    if rules:
        voice.heading("Rules")
        for rule in estimator.rules():
            voice.say(f"• {rule.words()}", indent="  ")
    record = _record(model, estimator, view)
    if rules:
        record["rules"] = [_rule_record(rule) for rule in estimator.rules()]
    if tree:
        record["text"] = export_text(estimator)
    voice.result(record)


def _show_summary(model: Path, estimator: Tree, view: TreeView, voice: Voice) -> None:
    voice.say(f"{model}: {_target_words(view)}, {_size_words(model.stat().st_size)}")
    splits = [node for node in view.nodes if not node.is_leaf]
    n_pairs = sum(len(node.features) == 2 for node in splits)
    pairs = f" ({n_pairs:,} on pairs of features)" if n_pairs else ""
    voice.say(
        f"{_counted(estimator.get_n_leaves(), 'leaf', 'leaves')}, depth {estimator.get_depth()}, "
        f"{_counted(len(splits), 'split')}{pairs}, from "
        f"{_counted(view.nodes[0].n_rows, 'training row')}"
    )
    scores = ", ".join(view.scores_in_words())
    if scores:
        voice.say(scores[0].upper() + scores[1:])
    if view.single_leaf_words is not None:
        voice.say(f"{view.single_leaf_words}.")
    changed = _changed_parameters(estimator)
    words = ", ".join(f"{name}={value}" for name, value in changed.items())
    voice.say(f"Parameters: {words or 'all by default'}")


def _counted(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _size_words(n_bytes: int) -> str:
    return f"{rounded(n_bytes / 1e6, 2)} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.1f} kB"


def _target_words(view: TreeView) -> str:
    if view.n_outputs > 1:
        return f"{view.n_outputs} targets"
    of_target = "" if view.target_name is None else f" of {view.target_name}"
    if view.classes is None:
        return f"regression{of_target}"
    labels = view.classes[0]
    return f"classification{of_target}, {len(labels)} classes ({listed(labels)})"


def _changed_parameters(estimator: Tree) -> dict[str, Any]:
    """Parameters that are not as by default."""
    kind = type(estimator)
    default, given = (
        kind(search=SearchOptions())._written_parameters(),
        estimator._written_parameters(),
    )
    return {name: value for name, value in given.items() if repr(value) != repr(default[name])}


def _show_features(estimator: Tree, view: TreeView, voice: Voice) -> None:
    voice.heading("Features, the most important first")
    heads = [
        Head("feature", is_flexible=True),
        Head("type"),
        Head("importance", is_number=True),
        Head("nodes", is_number=True),
        Head("categories", is_flexible=True),
    ]
    importance = estimator.feature_importances_
    order = np.argsort(-importance, kind="stable")
    rows = [_feature_row(view, view.features[j], float(importance[j])) for j in order]
    if not any(feature.is_categorical for feature in view.features):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    voice.table(heads, rows)


def _feature_row(view: TreeView, feature: FeatureInfo, importance: float) -> list[str]:
    n_nodes = _n_nodes(view, feature)
    return [
        feature.name,
        _kind(feature),
        percent(importance) if importance else "-",
        f"{n_nodes:,}" if n_nodes else "-",
        listed(feature.categories or ()),
    ]


def _kind(feature: FeatureInfo) -> str:
    if feature.categories:
        return _counted(len(feature.categories), "category", "categories")
    if feature.is_categorical:
        return "categories"
    if feature.is_date:
        return "date"
    return "whole number" if feature.is_whole else "number"


def _n_nodes(view: TreeView, feature: FeatureInfo) -> int:
    # By identity, as columns named 1 and "1" may look the same.
    return sum(any(its is feature for its in node.features) for node in view.nodes)


def _record(model: Path, estimator: Tree, view: TreeView) -> dict[str, Any]:
    importance = estimator.feature_importances_
    return {
        "model": str(model),
        "bytes": model.stat().st_size,
        "estimator": type(estimator).__name__,
        "classes": None if view.classes is None else view.classes,
        "targets": view.n_outputs,
        "rows": view.nodes[0].n_rows,
        "nodes": len(view.nodes),
        "leaves": estimator.get_n_leaves(),
        "depth": estimator.get_depth(),
        "target_names": view.target_names,
        "why_single_leaf": view.why_single_leaf,
        "training_score": view.score(),
        "held_out": None if view.held_out is None else vars(view.held_out),
        "parameters": estimator._written_parameters(),
        "features": [
            {
                "name": feature.name,
                "type": "category" if feature.is_categorical else _kind(feature),
                "categories": feature.categories or None,
                "importance": importance[j],
                "nodes": _n_nodes(view, feature),
            }
            for j, feature in enumerate(view.features)
        ],
    }


def _rule_record(rule: Rule) -> dict[str, Any]:
    return {
        "if": rule.premise(),
        "then": outcome(rule.prediction),
        "outcome": rule.outcome,
        "leaf": rule.leaf,
        "rows": rule.n_rows,
        "support": rule.support,
        "confidence": rule.confidence,
        "lift": rule.lift,
        "deviation": rule.deviation,
    }
