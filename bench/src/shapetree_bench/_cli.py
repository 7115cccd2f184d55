"""The command `shapetree-bench`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from shapetree_bench import _datasets as datasets
from shapetree_bench import _methods as methods
from shapetree_bench._evidence import Evidence
from shapetree_bench._protocols import DEPTHS, N_TRIALS, PROTOCOLS
from shapetree_bench._run import Order, Runner, versions
from shapetree_bench._store import Results, joined

CACHE = Path.home() / ".cache" / "shapetree-bench"

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Shape trees beside the paper's numbers and beside their peers.",
)
console = Console()


def main() -> None:
    """Run the command."""
    app(prog_name="shapetree-bench")


def _depths(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--depths: {text!r} is not a list of numbers such as 2,3,4") from None
    if min(found) < 1:
        raise ValueError(f"--depths: a depth is at least 1; got {text!r}")
    return found


def _fail(error: Exception) -> None:
    console.print(f"[red]error[/] {error}", highlight=False)
    raise typer.Exit(2)


def _command(arguments: list[str]) -> str:
    """The command as others may read it: paths of this machine say nothing to them."""
    shown = [Path(each).name if Path(each).is_absolute() else each for each in arguments]
    return shlex.join(["shapetree-bench", *shown])


@app.command()
def run(
    protocol: Annotated[str, typer.Option(help=f"One of {', '.join(PROTOCOLS)}.")] = "untuned",
    data: Annotated[
        str, typer.Option("--datasets", help="Names and groups, such as rice,page or small.")
    ] = "small",
    chosen: Annotated[
        str, typer.Option("--methods", help="Names and groups: ours, paper, peers, ablations.")
    ] = "CART,ours",
    peer: Annotated[
        list[str] | None, typer.Option(help="Another estimator, as package.module:Class.")
    ] = None,
    depths: Annotated[str, typer.Option(help="Depths of the trees.")] = ",".join(map(str, DEPTHS)),
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of Parquet files, target in column `target`.")
    ] = None,
    cache: Annotated[Path, typer.Option(help="Where downloads are kept.")] = CACHE,
    out: Annotated[Path, typer.Option(help="SQLite file; what it has is not done again.")] = Path(
        "results.sqlite"
    ),
    jobs: Annotated[int, typer.Option(min=1, help="Processes, each on a core of its own.")] = 1,
    trials: Annotated[int, typer.Option(min=1, help="Trials of a tuned model.")] = N_TRIALS,
    time_limit: Annotated[
        float | None,
        typer.Option(
            help="Processor seconds for a fit and its tests; by default the paper's 900, or 1800 "
            "with pairs."
        ),
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try again what failed.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do all of this again.")] = False,
) -> None:
    """Fit methods to datasets, and measure them."""
    try:
        if protocol not in PROTOCOLS:
            raise ValueError(f"--protocol: {protocol!r} is none of {', '.join(PROTOCOLS)}")
        if data_dir is not None and not data_dir.is_dir():
            raise ValueError(f"--data-dir: there is no folder {data_dir}")
        wanted = methods.methods_named(chosen, peer or [])
        order = Order(
            protocol=protocol,
            datasets=datasets.datasets_named(data),
            methods=wanted,
            depths=_depths(depths),
            n_trials=trials,
            data_dir=data_dir,
            cache=cache,
            jobs=jobs,
            time_limit=time_limit,
        )
    except ValueError as error:
        _fail(error)
    for method in wanted:
        if not method.is_installed:
            console.print(
                f"[yellow]skipped[/] {method.name}: {method.needs} is not installed",
                highlight=False,
            )
    results = Results(out)
    runner = Runner(order, results, console)
    cells = order.cells(runner.available())
    for cell in cells:
        if fresh or retry:
            results.forget(cell, only_failures=not fresh)
    todo = runner.jobs(cells)
    n_steps = sum(job.n_steps for job in todo)
    console.print(f"{len(cells):,} cells, {n_steps:,} fits to do, results in {out}")
    if todo:
        results.begin_run(_command(sys.argv[1:]), versions())
        try:
            runner.run(todo)
        except KeyboardInterrupt:
            console.print("stopped; the same command goes on from here")
            raise typer.Exit(130) from None
        console.print(f"{runner.n_done:,} fits done, {runner.n_failed:,} of them failed")
    results.close()


@app.command()
def export(
    results: Annotated[
        list[Path],
        typer.Argument(help="SQLite files of runs; where they have the same, the last one counts."),
    ],
    to: Annotated[Path, typer.Option(help="Folder of CSV files to add to.")] = Path("results"),
    replace: Annotated[
        bool, typer.Option("--replace", help="Keep nothing of what the folder has.")
    ] = False,
) -> None:
    """Add results to a folder of small CSV files, to keep."""
    for path in results:
        if not path.is_file():
            _fail(ValueError(f"there is no file {path}"))
    found = Evidence.of(joined(results))
    if not replace and any(to.glob("*.csv")):
        found = _evidence(to).with_newer(found)
    for path in found.write(to):
        console.print(f"{path}  {path.stat().st_size / 1000:.0f} kB", highlight=False)


@app.command()
def report(
    results: Annotated[
        Path, typer.Argument(help="SQLite file of a run, or folder of CSV files.")
    ] = Path("results"),
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("report"),
) -> None:
    """Write the report: Markdown, and one page of HTML."""
    from shapetree_bench._report import write_report

    for path in write_report(_evidence(results), out):
        console.print(f"{path}  {path.stat().st_size / 1000:.0f} kB", highlight=False)


@app.command()
def readme(
    results: Annotated[
        Path, typer.Argument(help="SQLite file of a run, or folder of CSV files.")
    ] = Path("bench/results"),
    given: Annotated[
        list[Path] | None,
        typer.Option("--readme", help="Files with tables; by default README.md and docs/**/*.md."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing, and fail if a table is out of date.")
    ] = False,
) -> None:
    """Renew the tables of the README and of other texts, or check them."""
    from shapetree_bench import _readme

    evidence = _evidence(results)
    for path in given or _readme.marked(Path()):
        try:
            names = _readme.outdated(path, evidence)
        except (OSError, ValueError) as error:
            _fail(error)
        if not names:
            console.print(f"all tables of {path} agree with {results}", highlight=False)
        elif check:
            _fail(
                ValueError(
                    f"tables of {path} do not agree with {results}: {', '.join(names)}; "
                    "renew them with shapetree-bench readme"
                )
            )
        else:
            text = path.read_text(encoding="utf-8")
            path.write_text(_readme.update(text, evidence), encoding="utf-8")
            console.print(f"renewed in {path}: {', '.join(names)}", highlight=False)


def _evidence(path: Path) -> Evidence:
    try:
        return Evidence.read(path)
    except FileNotFoundError as error:
        _fail(error)
        raise


@app.command("list")
def show() -> None:
    """Show the names of datasets, methods and their groups."""
    for title, groups, names in (
        ("datasets", datasets.GROUPS, datasets.BY_NAME),
        ("methods", methods.GROUPS, methods.METHODS),
    ):
        console.print(f"[bold]{title}[/]")
        for name, members in groups.items():
            console.print(f"  {name} ({len(members)})", highlight=False)
        for name in names:
            missing = ""
            if title == "methods" and not methods.METHODS[name].is_installed:
                missing = f"  [yellow]{methods.METHODS[name].needs} is not installed[/]"
            console.print(f"    {name}{missing}", highlight=False)
