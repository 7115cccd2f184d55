"""How sphinx-gallery runs examples: blocks show the pictures they end in, and may not warn."""

from __future__ import annotations

import warnings
from typing import Any

from sphinx_gallery.scrapers import figure_rst, matplotlib_scraper

from shapetree.plot import Picture


def pictures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the picture that a block of an example ends in, and figures of pyplot."""
    value = block_vars["example_globals"].get("___")
    if not isinstance(value, Picture):
        return matplotlib_scraper(block, block_vars, gallery_conf)
    block_vars["example_globals"]["___"] = None
    path = next(block_vars["image_path_iterator"])
    value.save(path, dpi=160)
    return figure_rst([path], gallery_conf["src_dir"])


def warnings_are_errors(gallery_conf: dict[str, Any], fname: str, when: str) -> None:
    """Let an example fail that warns, and nothing else that is built."""
    if when == "before":
        warnings.simplefilter("error")
    else:
        warnings.resetwarnings()


def _get_sg_image_scraper() -> Any:
    """What sphinx-gallery asks a module for that is named as a scraper."""
    return pictures
