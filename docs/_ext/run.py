"""The directive `run`: Python code, and what it prints, draws or writes.

Blocks of a page share their names and an empty working directory. A block shows its code, then
what it prints, then the value of its last expression: pictures as images, tables as HTML, other
values as text. Warnings are errors. Options:

- `page: name`: the value is a page of `export_html`, shown in a frame and kept as `pages/name.html`
- `alt: text`: what a picture shows, for those who cannot see it
- `hide-code`, `hide-output`: leave out one of the two
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

# Below the sources: what the code makes, which Sphinx copies from there.
GENERATED = "generated"
DPI = 192
PIXELS_PER_INCH = 96


class Run(SphinxDirective):
    """Execute the content."""

    has_content = True
    option_spec = {  # noqa: RUF012
        "page": directives.unchanged_required,
        "alt": directives.unchanged_required,
        "height": directives.positive_int,
        "hide-code": directives.flag,
        "hide-output": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Nodes of the code and of what comes of it."""
        code = "\n".join(self.content)
        printed, value = self._execute(code)
        made: list[nodes.Node] = []
        if "hide-code" not in self.options:
            made.append(nodes.literal_block(code, code, language="python"))
        if "hide-output" in self.options:
            return made
        if printed:
            made.append(_text(printed))
        if value is not None:
            made.append(self._shown(value))
        return made

    def _execute(self, code: str) -> tuple[str, Any]:
        names = self.env.temp_data.setdefault("run names", {"__name__": "__main__"})
        if "run folder" not in self.env.temp_data:
            self.env.temp_data["run folder"] = tempfile.TemporaryDirectory()
        module = ast.parse(code)
        last = None
        if module.body and isinstance(module.body[-1], ast.Expr):
            last = ast.Expression(module.body.pop().value)
        printed, value, before = io.StringIO(), None, Path.cwd()
        try:
            os.chdir(self.env.temp_data["run folder"].name)
            with contextlib.redirect_stdout(printed), warnings.catch_warnings():
                warnings.simplefilter("error")
                exec(compile(module, "<docs>", "exec"), names)
                if last is not None:
                    value = eval(compile(last, "<docs>", "eval"), names)
        except Exception:
            raise self.severe(f"the code of this page fails\n{traceback.format_exc()}") from None
        finally:
            os.chdir(before)
        return printed.getvalue().rstrip(), value

    def _shown(self, value: Any) -> nodes.Node:
        if "page" in self.options:
            return self._frame(value)
        figure = getattr(value, "figure", None)
        if figure is not None and hasattr(figure, "savefig"):
            return self._image(value)
        if not isinstance(value, str) and hasattr(value, "_repr_html_"):
            html = f'<div class="output scroll">{value._repr_html_()}</div>'
            return nodes.raw("", html, format="html")
        return _text(value if isinstance(value, str) else repr(value))

    def _image(self, picture: Any) -> nodes.Node:
        count = self.env.temp_data.get("run count", 0)
        self.env.temp_data["run count"] = count + 1
        name = f"{self.env.docname.replace('/', '-')}-{count}.png"
        path = _folder(self.env.srcdir, "pictures") / name
        width = round(picture.figure.get_size_inches()[0] * PIXELS_PER_INCH)
        getattr(picture, "save", picture.figure.savefig)(path, dpi=DPI)
        alt = self.options.get("alt", "The picture that this code draws")
        image = nodes.image(uri=f"/{GENERATED}/pictures/{name}", alt=alt, width=f"{width}px")
        return nodes.container("", image, classes=["picture"])

    def _frame(self, html: str) -> nodes.Node:
        name = self.options["page"]
        path = _folder(self.env.srcdir, "extra", "pages") / f"{name}.html"
        path.write_text(html, encoding="utf-8")
        url = "../" * self.env.docname.count("/") + f"pages/{name}.html"
        height = self.options.get("height", 640)
        return nodes.raw(
            "",
            f'<iframe class="page" src="{url}" height="{height}" loading="lazy" '
            f'title="A page of export_html: {name}"></iframe>\n'
            f'<p class="alone"><a href="{url}">Open this page by itself</a></p>',
            format="html",
        )


def _folder(source: str | Path, *parts: str) -> Path:
    path = Path(source, GENERATED, *parts)
    path.mkdir(parents=True, exist_ok=True)
    return path


def _text(text: str) -> nodes.Node:
    block = nodes.literal_block(text, text, language="none")
    return nodes.container("", block, classes=["output"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive to Sphinx."""
    app.add_directive("run", Run)
    _folder(app.srcdir, "extra", "pages")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
