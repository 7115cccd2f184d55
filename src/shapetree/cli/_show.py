"""`shapetree inspect`, `explain`, `plot` and `export`: what a model is, says and looks like."""

from __future__ import annotations

import io
from dataclasses import replace
from enum import StrEnum
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Column as Heading

import shapetree
from shapetree import SearchOptions, export_text, plot_node, plot_tree
from shapetree.cli._arguments import (
    STANDARD,
    AsJson,
    Debug,
    Encoding,
    ModelFile,
    Quiet,
    Separator,
    check_ending,
    check_inputs,
    check_outputs,
    names_in,
    settings_in,
    value_in,
    write_outputs,
)
from shapetree.cli._console import Console, Misuse, Problem, listed, message_of
from shapetree.cli._models import (
    Model,
    Tree,
    counted,
    forest_words,
    outcome,
    read_model,
    read_tree,
    rows_for,
    size_of,
    text_columns,
    typed_row,
    used_features,
)
from shapetree.cli._reading import read_file
from shapetree.data._table import FeatureInfo
from shapetree.ensemble._estimators import BaseShapeForest
from shapetree.explain import Explanation, Rule
from shapetree.plot._picture import import_matplotlib
from shapetree.tree._digits import percent, rounded
from shapetree.tree._evaluation import score_words
from shapetree.tree._fitted import FittedTree, TreeOrForest
from shapetree.tree._from_estimator import fitted_model, fitted_tree
from shapetree.tree._view import TreeView, view_of

PICTURES = (".png", ".svg", ".pdf")
DPI = 200


Format = StrEnum("Format", ["sql", "python", "onnx", "dot", "js", "text", "html", "json"])
ENDINGS = {f".{form}": form for form in Format} | {
    ".py": Format.python,
    ".gv": Format.dot,
    ".mjs": Format.js,
    ".txt": Format.text,
}


# --- inspect ---


def inspect(
    model: ModelFile,
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


def _nodes_by_feature(fitted: TreeOrForest) -> list[int]:
    """How many nodes split on each feature."""
    counts = np.zeros(len(fitted.features), dtype=np.int64)
    for tree in fitted.trees:
        for features in (tree.feature, tree.second_feature):
            counts += np.bincount(features[features >= 0], minlength=len(counts))
    return counts.tolist()


def _size_words(n_bytes: int) -> str:
    return f"{rounded(n_bytes / 1e6, 2)} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.1f} kB"


def _target_words(fitted: TreeOrForest) -> str:
    if fitted.n_outputs > 1:
        return f"{fitted.n_outputs} targets"
    of_target = f" of {fitted.names.targets[0]}" if fitted.names.targets else ""
    if fitted.classes is None:
        return f"regression{of_target}"
    labels = fitted.classes[0].tolist()
    return f"classification{of_target}, {len(labels)} classes ({listed(labels)})"


def _changed_parameters(estimator: Model) -> dict[str, Any]:
    """Parameters that are not as by default."""
    kind = type(estimator)
    new = kind() if isinstance(estimator, BaseShapeForest) else kind(search=SearchOptions())
    default, given = new._written_parameters(), estimator._written_parameters()
    return {name: value for name, value in given.items() if repr(value) != repr(default[name])}


def _show_features(
    fitted: TreeOrForest, importance: np.ndarray, n_nodes: list[int], console: Console
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


# --- explain ---


def explain(
    model: ModelFile,
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="A file, as `predict` takes it.")
    ] = None,
    row: Annotated[
        int | None,
        typer.Option(min=1, help="Explain only this row; 1 is the first row below the names."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Value to use instead of the file's; may be repeated.",
        ),
    ] = None,
    fixed: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Features that cannot change.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="The only features that can change.")
    ] = None,
    direction: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=up|down", help="A feature that can only go up or down; may be repeated."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Prediction to aim for: a class, a number, or a range such as 10:20 or :20."
        ),
    ] = None,
    unseen: Annotated[
        bool, typer.Option("--unseen", help="Also change numbers to what training has not seen.")
    ] = False,
    encoding: Encoding = "utf-8",
    separator: Separator = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Explain predictions, row by row.

    Says why a row gets its prediction, and which change of one or two values would change it.
    Explains one row of a file, all its rows, or a row typed in with --set, where everything else
    counts as missing. With a row of a file, --set asks "what if".

    For example:
      shapetree explain model.json new.csv --row 3
      shapetree explain model.json new.csv --row 3 --set income=52000
      shapetree explain model.json --set age=30 --set colour=red
      shapetree explain model.json new.csv --row 3 --fixed age,sex --target yes
      shapetree explain model.json new.csv --json
    """
    console = Console(as_json, quiet)
    changes = settings_in(settings, "--set")
    if data is None and not changes:
        raise Misuse("name a file, or type a row in with --set name=value")
    if data is None and row is not None:
        raise Misuse("--row needs a file")
    if data is not None and changes and row is None:
        raise Misuse("--set with a file needs --row, to know which row to change")
    check_inputs(model, data)
    tree = read_tree(model, "explain")
    fitted = fitted_tree(tree)
    table = None
    if data is not None:
        table = read_file(data, encoding, separator, text_columns(fitted))
        if row is not None:
            n_rows = table.rows.num_rows
            if row > n_rows:
                raise Problem(f"{data} has {n_rows:,} rows, so there is no row {row:,}")
            table = replace(table, rows=table.rows.slice(row - 1, 1))
    if table is None or changes:
        absent = [each.name for each in used_features(fitted) if each.name not in changes]
        if table is None and absent:
            console.note(f"not given, so treated as missing: {listed(absent)}")
        table = typed_row(fitted, changes, table)
    given: dict[str, Any] = {
        "fixed": names_in(fixed) or None,
        "only": names_in(only) or None,
        "direction": settings_in(direction, "--direction") or None,
        "target": None if target is None else _target_in(target, fitted),
        "unseen": unseen or None,
    }
    constraints = {name: value for name, value in given.items() if value is not None}
    rows = rows_for(fitted, table, console)
    with console.progress("Explaining"):
        try:
            explanations = tree.explain(rows, **constraints)
        except (ValueError, TypeError) as error:
            if not constraints:
                raise
            raise Misuse(f"--{message_of(error)}") from error
    records = []
    for number, explanation in enumerate(explanations, start=row or 1):
        is_one_of_many = data is not None and len(explanations) > 1
        console.say(f"Row {number}: {explanation}" if is_one_of_many else str(explanation))
        if explanation.flip is not None:
            console.say(str(explanation.flip))
        if is_one_of_many:
            console.say()
        records.append({"row": None if data is None else number, **_record(explanation)})
    console.result({"model": str(model), "data": data, "explanations": records})


def _target_in(text: str, fitted: FittedTree) -> Any:
    """The class, number or range that a text stands for."""
    if fitted.classes is not None:
        known = {str(label): label for labels in fitted.classes for label in labels.tolist()}
        if text not in known:
            raise Misuse(f"--target must be one of the classes {listed(known)}, got {text!r}")
        return known[text]
    try:
        ends = [float(end) if end.strip() else None for end in text.split(":")]
    except ValueError:
        ends = [None]
    if len(ends) > 2 or ends == [None]:
        raise Misuse(f"--target must be a number or a range such as 10:20, got {text!r}")
    return ends[0] if len(ends) == 1 else tuple(ends)


def _record(explanation: Explanation) -> dict[str, Any]:
    flip, flip_record = explanation.flip, None
    if flip is not None:
        changes = [vars(change) for change in flip.changes]
        flip_record = {
            **changes[0],
            "changes": changes,
            "size": flip.size,
            "leaf": flip.leaf,
            "outcome": flip.outcome,
            "sentence": str(flip),
        }
    return {
        "prediction": outcome(explanation.prediction),
        "sentence": str(explanation),
        "leaf": explanation.leaf,
        "nodes": [step.node for step in explanation.path] + [explanation.leaf],
        "conditions": [condition.words() for condition in explanation.conditions],
        "values": explanation.row,
        "notes": explanation.notes,
        "flip": flip_record,
    }


# --- export ---


def export(
    model: ModelFile,
    to: Annotated[
        Format | None, typer.Option(help="Format; by default, the file's ending decides.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file instead of the screen."),
    ] = None,
    dialect: Annotated[str | None, typer.Option(help="SQL dialect, such as sqlite.")] = None,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="Any other option of the exporter; may be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a model as code, as a page, or for other programs.

    For example:
      shapetree export model.json --to text
      shapetree export model.json --to sql --dialect sqlite -o tree.sql
      shapetree export model.json -o tree.onnx
      shapetree export model.json -o report.html --option title="Who leaves"
    """
    console = Console(as_json, quiet)
    output = None if output == STANDARD else output
    form = _format(to, output)
    if form is Format.onnx and output is None:
        raise Misuse("ONNX is binary; name a file with -o")
    settings = {name: value_in(text) for name, text in settings_in(options, "--option").items()}
    if dialect is not None:
        settings["dialect"] = dialect
    exporter = getattr(shapetree, f"export_{form}")
    known = list(signature(exporter).parameters)[1:]
    known = [name for name in known if name not in ("path", "X", "y")]
    for name in settings:
        if name not in known:
            option = "--dialect" if name == "dialect" else f"--option {name}"
            others = f"; its options are {listed(known)}" if known else ""
            raise Misuse(f"an export to {form} has no option {option}{others}")
    check_outputs([output], [model])
    is_drawn = form in (Format.text, Format.dot, Format.html)
    estimator = read_tree(model, f"export --to {form}") if is_drawn else read_model(model)
    with console.progress(f"Exporting to {form}"):
        content = _content(exporter, estimator, settings)
    record: dict[str, Any] = {"model": str(model), "format": form}
    if output is None:
        console.text(str(content))
        record["content"] = content
    else:
        record["written"] = write_outputs({output: content})
        console.say(f"Wrote {output}")
    console.result(record)


def _format(to: Format | None, output: Path | None) -> Format:
    if to is not None:
        return to
    if output is None:
        raise Misuse(f"choose a format: --to {listed(Format)}")
    form = ENDINGS.get(output.suffix.lower())
    if form is None:
        raise Misuse(f"cannot tell the format from {output}; add --to {listed(Format)}")
    return form


def _content(exporter: Any, model: Model, settings: dict[str, Any]) -> str | bytes:
    """What an exporter returns, as the content of a file."""
    try:
        result = exporter(model, **settings)
    except (ValueError, TypeError) as error:
        # Without settings, it must be the model that cannot be exported.
        raise (Misuse if settings else Problem)(message_of(error)) from error
    serialise = getattr(result, "SerializeToString", None)
    return serialise() if serialise is not None else result


# --- plot ---


def plot(
    model: ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .png, .svg or .pdf.")],
    node: Annotated[int | None, typer.Option(min=0, help="Draw only this node, in detail.")] = None,
    start: Annotated[
        int | None, typer.Option("--from", min=0, help="Draw the tree below this node.")
    ] = None,
    max_depth: Annotated[int | None, typer.Option(min=0, help="Number of levels to draw.")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the picture.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Draw a tree, or one of its nodes.

    For example:
      shapetree plot model.json -o tree.png
      shapetree plot model.json -o tree.pdf --max-depth 2 --title "Who leaves"
      shapetree plot model.json -o root.svg --node 0
    """
    console = Console(as_json, quiet)
    if node is not None and (start is not None or max_depth is not None):
        raise Misuse("--node draws one node; leave out --from and --max-depth")
    check_picture(output)
    check_outputs([output], [model])
    tree = read_tree(model, "plot")
    with console.progress("Drawing"):
        if node is None:
            content = picture_of_tree(
                tree, output, node=start or 0, max_depth=max_depth, title=title
            )
        else:
            content = _content_of(plot_node(tree, node, title=title), output)
    written = write_outputs({output: content})
    console.say(f"Wrote {output}")
    console.result({"model": str(model), "written": written})


def check_picture(path: Path | None) -> None:
    """Refuse a name that is not a picture's; say now if matplotlib is missing."""
    check_ending(path, PICTURES)
    if path is not None:
        import_matplotlib()
        import matplotlib

        # No window is needed, and there may be no screen at all.
        matplotlib.use("Agg")


def picture_of_tree(tree: Tree, path: Path, **options: Any) -> bytes:
    """A tree as a picture, in the format of the path's ending."""
    return _content_of(plot_tree(tree, **options), path)


def _content_of(picture: Any, path: Path) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, format=path.suffix[1:].lower(), dpi=DPI)
    return buffer.getvalue()
