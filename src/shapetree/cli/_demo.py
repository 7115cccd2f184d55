"""`shapetree demo`: all commands, one after the other, on data that comes with scikit-learn."""

from __future__ import annotations

import shlex
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Annotated

from shapetree.cli._options import Argument
from shapetree.cli._problems import Problem
from shapetree.cli._voice import Voice

SESSION = (
    "fit wine.csv -t cultivar --depth 2 --test-size 0.5 -o model.json",
    "inspect model.json",
    "predict model.json wine.csv --proba -o predictions.csv",
    "explain model.json wine.csv --row 1",
    "explain model.json wine.csv --row 1 --set proline=600",
    "plot model.json -o tree.png",
    "plot model.json --node 0 -o root.svg",
    "export model.json -o report.html",
    "export model.json --dialect sqlite -o tree.sql",
)


def demo(
    voice: Voice,
    folder: Annotated[
        Path | None, Argument("Folder for the files; by default a new one.", "FOLDER")
    ] = None,
) -> None:
    """Run through all commands, from a data file to a report.

    For example:
      shapetree demo
      shapetree demo wine
    """
    place = _make_folder(folder)
    _write_data(place / "wine.csv")
    with chdir(place):
        for line in SESSION:
            voice.heading(f"$ shapetree {line}")
            _run(line, voice)
    files = sorted(path.name for path in place.iterdir())
    voice.heading(f"All files are in {place}")
    voice.say(", ".join(files))
    voice.say(f"Open {place / 'report.html'} in a browser")
    voice.result({"folder": str(place), "files": files, "session": list(SESSION)})


def _make_folder(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="shapetree-"))
    if folder.exists() and not folder.is_dir():
        raise Problem(f"{folder} is not a folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise Problem(f"{folder} is not empty; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def _write_data(path: Path) -> None:
    from sklearn.datasets import load_wine

    from shapetree._files import write_file

    wine = load_wine(as_frame=True)
    names = {"od280/od315_of_diluted_wines": "dilution"}
    table = wine.data.rename(columns=names)
    table["cultivar"] = wine.target.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
    write_file(path, table.to_csv(index=False, lineterminator="\n"), "the data")


def _run(line: str, voice: Voice) -> None:
    from shapetree.cli._app import make_app

    words = shlex.split(line) + ([] if voice.is_talkative else ["--quiet"])
    code = make_app()(words, prog_name="shapetree", standalone_mode=False)
    if code:
        raise Problem(f"the demo stopped at: shapetree {line}")
