"""`shapetree inspect`: what a model file contains."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Column as Heading

from shapetree import SearchOptions, export_text
from shapetree.cli._arguments import AsJson, Debug, Model, Quiet
from shapetree.cli._console import Console, listed
from shapetree.cli._models import (
    Fitted,
    Tree,
    counted,
    forest_words,
    outcome,
    read_model,
    read_tree,
    size_of,
)
from shapetree.cli._models import Model as AnyModel
from shapetree.data._table import FeatureInfo
from shapetree.ensemble._estimators import BaseShapeForest
from shapetree.explain import Rule
from shapetree.tree._digits import percent, rounded
from shapetree.tree._evaluation import score_words
from shapetree.tree._from_estimator import fitted_model, fitted_tree
from shapetree.tree._view import TreeView, view_of


def inspect(
    model: Model,
    rules: Annotated[bool, typer.Option("--rules", help="Add the tree as if/then rules.")] = False,
    tree: Annotated[bool, typer.Option("--tree", help="Add the whole tree as text.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show what a model file contains.

    Lists its features, classes, size and parameters, and on request its rules.

    For example:
      shapetree inspect model.json
      shapetree inspect model.json --rules
      shapetree inspect model.json --tree | less
    """
    console = Console(as_json, quiet)
    what = "inspect --rules" if rules else "inspect --tree"
    estimator = read_tree(model, what) if rules or tree else read_model(model)
    fitted = fitted_model(estimator)
    console.say(f"{model}: {_target_words(fitted)}, {_size_words(model.stat().st_size)}")
    if isinstance(estimator, BaseShapeForest):
        n_rows, about = _show_forest(estimator, console)
    else:
        n_rows, about = _show_tree(estimator, view_of(fitted_tree(estimator)), console)
    changed = _changed_parameters(estimator)
    words = ", ".join(f"{name}={value}" for name, value in changed.items())
    console.say(f"Parameters: {words or 'all by default'}")
    importance = estimator.feature_importances_
    n_nodes = _nodes_by_feature(fitted)
    _show_features(fitted, importance, n_nodes, console)
    n_leaves, depth = size_of(estimator)
    record = {
        "model": str(model),
        "bytes": model.stat().st_size,
        "estimator": type(estimator).__name__,
        "classes": fitted.classes,
        "targets": fitted.n_outputs,
        "rows": n_rows,
        "nodes": sum(tree.node_count for tree in fitted.trees),
        "leaves": n_leaves,
        "depth": depth,
        "target_names": fitted.names.targets,
        **about,
        "parameters": estimator._written_parameters(),
        "features": [
            {
                "name": feature.name,
                "type": "category" if feature.is_categorical else _kind(feature),
                "categories": feature.categories or None,
                "importance": importance[j],
                "nodes": n_nodes[j],
            }
            for j, feature in enumerate(fitted.features)
        ],
    }
    if tree:
        console.heading("Tree")
        record["text"] = export_text(estimator)
        console.lines(record["text"])
    if rules:
        console.heading("Rules")
        for rule in estimator.rules():
            console.say(f"• {rule.words()}")
        record["rules"] = [_rule_record(rule) for rule in estimator.rules()]
    console.result(record)


def _show_tree(tree: Tree, view: TreeView, console: Console) -> tuple[int, dict[str, Any]]:
    """Say how large and how good a tree is; its rows, and the same for JSON."""
    n_rows = view.nodes[0].n_rows
    splits = [node for node in view.nodes if not node.is_leaf]
    n_pairs = sum(len(node.features) == 2 for node in splits)
    pairs = f" ({n_pairs:,} on pairs of features)" if n_pairs else ""
    console.say(
        f"{counted(tree.get_n_leaves(), 'leaf', 'leaves')}, depth {tree.get_depth()}, "
        f"{counted(len(splits), 'split')}{pairs}, from {counted(n_rows, 'training row')}"
    )
    scores = ", ".join(view.scores_in_words())
    if scores:
        console.say(scores[0].upper() + scores[1:])
    if view.single_leaf_words is not None:
        console.say(f"{view.single_leaf_words}.")
    return n_rows, {
        "why_single_leaf": view.why_single_leaf,
        "training_score": view.score(),
        "held_out": None if view.held_out is None else vars(view.held_out),
    }


def _show_forest(forest: BaseShapeForest, console: Console) -> tuple[int, dict[str, Any]]:
    """Say how large and how good a forest is; the rows of a tree, and the same for JSON."""
    fitted = forest._fitted
    n_rows = max(int(tree.n_node_samples[0]) for tree in fitted.trees)
    console.say(f"{forest_words(forest)}, from {counted(n_rows, 'training row')} each")
    if fitted.oob_score is not None:
        score = score_words(fitted.classes is not None, fitted.oob_score)
        console.say(f"{score[0].upper()}{score[1:]} on out-of-bag rows")
    return n_rows, {"trees": len(fitted.trees), "oob_score": fitted.oob_score}


def _nodes_by_feature(fitted: Fitted) -> list[int]:
    """How many nodes split on each feature."""
    counts = np.zeros(len(fitted.features), dtype=np.int64)
    for tree in fitted.trees:
        for features in (tree.feature, tree.second_feature):
            counts += np.bincount(features[features >= 0], minlength=len(counts))
    return counts.tolist()


def _size_words(n_bytes: int) -> str:
    return f"{rounded(n_bytes / 1e6, 2)} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.1f} kB"


def _target_words(fitted: Fitted) -> str:
    if fitted.n_outputs > 1:
        return f"{fitted.n_outputs} targets"
    of_target = f" of {fitted.names.targets[0]}" if fitted.names.targets else ""
    if fitted.classes is None:
        return f"regression{of_target}"
    labels = fitted.classes[0].tolist()
    return f"classification{of_target}, {len(labels)} classes ({listed(labels)})"


def _changed_parameters(estimator: AnyModel) -> dict[str, Any]:
    """Parameters that are not as by default."""
    kind = type(estimator)
    new = kind() if isinstance(estimator, BaseShapeForest) else kind(search=SearchOptions())
    default, given = new._written_parameters(), estimator._written_parameters()
    return {name: value for name, value in given.items() if repr(value) != repr(default[name])}


def _show_features(
    fitted: Fitted, importance: np.ndarray, n_nodes: list[int], console: Console
) -> None:
    console.heading("Features, the most important first")
    headings = [
        Heading("feature", overflow="fold"),
        Heading("type", no_wrap=True),
        Heading("importance", justify="right", no_wrap=True),
        Heading("nodes", justify="right", no_wrap=True),
        Heading("categories", overflow="fold"),
    ]
    rows = []
    for j in np.argsort(-importance, kind="stable"):
        feature = fitted.features[j]
        share = percent(float(importance[j])) if importance[j] else "-"
        nodes = f"{n_nodes[j]:,}" if n_nodes[j] else "-"
        rows.append([feature.name, _kind(feature), share, nodes, listed(feature.categories or ())])
    if not any(feature.is_categorical for feature in fitted.features):
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    console.table(headings, rows)


def _kind(feature: FeatureInfo) -> str:
    if feature.categories:
        return counted(len(feature.categories), "category", "categories")
    if feature.is_categorical:
        return "categories"
    if feature.is_date:
        return "date"
    return "whole number" if feature.is_whole else "number"


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
