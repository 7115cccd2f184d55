"""A report as data, and how it becomes Markdown and one page of HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import TypeAlias

import numpy as np

MINUS = "\N{MINUS SIGN}"
DASH = "\N{EN DASH}"
# A difference of this many points has the full colour.
FULL_SHADE = 4.0


def signed(value: float, digits: int = 1) -> str:
    """A difference with its sign, as it is printed; none at all has no sign."""
    text = f"{value:+.{digits}f}"
    return text.replace("-", MINUS) if float(text) else text[1:]


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes
    ----------
    text, note : str
        The note stands small beside the text.
    shade : float
        From -1 (bad, warm) to 1 (good, cool); 0 has no colour.
    is_quiet : bool
        Whether it is shown paler: it rests on less than the others do.
    title : str
        What is seen when pointing at it.
    """

    text: str
    note: str = ""
    shade: float = 0.0
    is_quiet: bool = False
    title: str = ""


NOTHING = Cell(DASH, is_quiet=True)


def shaded(value: float, reference: float | None, digits: int = 1) -> Cell:
    """A number with its difference from another, coloured."""
    text = f"{value:.{digits}f}"
    if reference is None:
        return Cell(text)
    gap = value - reference
    return Cell(text, signed(gap, digits), shade(gap))


def shade(gap: float, full: float = FULL_SHADE, digits: int = 1) -> float:
    """The colour of a difference; one that is printed as none has no colour."""
    return float(np.clip(gap / full, -1, 1)) if round(gap, digits) else 0.0


@dataclass
class Table:
    """A table; a row that is a string is a heading within it."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell | str] | str]
    caption: str = ""


@dataclass
class Figure:
    """A picture in SVG, with what it shows in words."""

    name: str
    svg: str
    caption: str


Block: TypeAlias = str | Table | Figure


@dataclass
class Section:
    """A part of the report: paragraphs, tables and pictures, which unfold below its title.

    Attributes
    ----------
    title : str
    blocks : list of str, Table or Figure
    about : str
        What it has, in a line that is always seen.
    """

    title: str
    blocks: list[Block] = field(default_factory=list)
    about: str = ""


@dataclass
class Document:
    """The report."""

    title: str
    lead: list[Block]
    sections: list[Section]

    def figures(self) -> list[Figure]:
        """All pictures."""
        blocks = [*self.lead, *(block for section in self.sections for block in section.blocks)]
        return [block for block in blocks if isinstance(block, Figure)]


def _cell(cell: Cell | str) -> Cell:
    return Cell(cell) if isinstance(cell, str) else cell


# Markdown


def to_markdown(document: Document, figures: str) -> str:
    """The report in Markdown; pictures are files in the folder `figures`."""
    parts = [f"# {document.title}", *(_markdown_block(each, figures) for each in document.lead)]
    for section in document.sections:
        parts.append(f"## {section.title}")
        if section.about:
            parts.append(f"{section.about}.")
        parts += [_markdown_block(block, figures) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def _markdown_block(block: Block, figures: str) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, Figure):
        return f"![{block.caption}]({figures}/{block.name}.svg)\n\n*{block.caption}*"
    table = markdown_table(block)
    return f"**{block.caption}**\n\n{table}" if block.caption else table


def markdown_table(table: Table) -> str:
    """A table alone."""
    lines = [_line(table.head), _line(["---"] * len(table.head))]
    for row in table.rows:
        if isinstance(row, str):
            lines.append(_line([f"**{row}**", *[""] * (len(table.head) - 1)]))
        else:
            cells = [_cell(each) for each in row]
            lines.append(_line([f"{c.text} ({c.note})" if c.note else c.text for c in cells]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# HTML


def to_html(document: Document) -> str:
    """The report as one page that needs nothing else."""
    style = (files("shapetree_bench") / "report.css").read_text()
    lead = "\n".join(_html_block(block) for block in document.lead)
    body = "".join(_html_section(section) for section in document.sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(document.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(document.title)}</h1><div class=lead>{lead}</div></header>\n"
        f"<main>\n{body}</main>\n"
        "</body>\n</html>\n"
    )


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _inline(text: str) -> str:
    """Text with `code` and **bold**, or a list of lines that begin with a hyphen."""
    lines = text.split("\n")
    if all(line.startswith("- ") for line in lines):
        return "</p><ul>" + "".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "</ul><p>"
    safe = escape(text, quote=False)
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", safe)


def _html_section(section: Section) -> str:
    anchor = _anchor(section.title)
    blocks = "\n".join(_html_block(block) for block in section.blocks)
    about = f"<span>{_inline(section.about)}</span>" if section.about else ""
    title = f"<summary><h2>{escape(section.title)}</h2>{about}</summary>"
    return f'<details id="{anchor}">{title}\n{blocks}\n</details>\n'


def _html_block(block: Block) -> str:
    if isinstance(block, str):
        return f"<p>{_inline(block)}</p>".replace("<p></p>", "")
    if isinstance(block, Figure):
        caption = f"<figcaption>{escape(block.caption)}</figcaption>"
        return f"<figure><div class=wide>{block.svg}</div>{caption}</figure>"
    is_text = _text_columns(block)
    head = "".join(
        f'<th scope="col"{" class=left" * left}>{escape(name)}</th>'
        for name, left in zip(block.head, is_text, strict=True)
    )
    rows = "\n".join(_html_row(row, is_text) for row in block.rows)
    caption = f"<caption>{_inline(block.caption)}</caption>" if block.caption else ""
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    return f'<div class=wide tabindex="0" role="region" aria-label="Table">{table}</div>'


def _text_columns(table: Table) -> list[bool]:
    """Which columns hold words, which begin on the left, and not numbers alone."""
    rows = [row for row in table.rows if not isinstance(row, str)]
    return [
        any(letter.isalpha() for row in rows for letter in _cell(row[column]).text)
        for column in range(len(table.head))
    ]


def _html_row(row: Sequence[Cell | str] | str, is_text: list[bool]) -> str:
    if isinstance(row, str):
        heading = f"<span>{escape(row)}</span>"
        return f'<tr class=block><th colspan="{len(is_text)}" scope="colgroup">{heading}</th></tr>'
    first, *others = (_cell(each) for each in row)
    name = f'<th scope="row">{_inline(first.text)}{_note(first)}</th>'
    return f"<tr>{name}{''.join(map(_html_cell, others, is_text[1:]))}</tr>"


def _note(cell: Cell) -> str:
    return f" <small>{escape(cell.note)}</small>" if cell.note else ""


def _html_cell(cell: Cell, is_text: bool) -> str:
    classes = ["quiet"] * cell.is_quiet + ["left"] * is_text
    attributes = f' class="{" ".join(classes)}"' if classes else ""
    if cell.title:
        attributes += f' title="{escape(cell.title)}"'
    if cell.shade:
        kind = "good" if cell.shade > 0 else "bad"
        share = round(100 * min(1.0, abs(cell.shade)))
        attributes += f' style="--shade:{share}%" data-tone={kind}'
    return f"<td{attributes}>{_inline(cell.text)}{_note(cell)}</td>"
