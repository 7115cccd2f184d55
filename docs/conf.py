"""The documentation: `make docs`."""

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

# One thread for each process that builds pages, and the same trees.
os.environ.setdefault("OMP_NUM_THREADS", "1")

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent / "examples")]

project = "shapetree"
author = "The shapetree developers"
copyright = author
version = release = version_of("shapetree")

extensions = [
    "myst_parser",
    "numpydoc",
    "run",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.duration",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["generated/extra", "generated/pictures", "gallery/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "image_scrapers": ("gallery_pictures",),
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"Picture|ShapeTree|DataFrame\b$",
    "reset_modules": ("gallery_pictures.warnings_are_errors",),
    "reset_modules_order": "both",
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1_000,
    "within_subsection_order": "FileNameSortKey",
    "show_api_usage": False,
    "log_level": {"backreference_missing": "info", "gallery_examples": "info"},
}

html_context = {"default_mode": "auto"}
html_theme = "pydata_sphinx_theme"
html_title = "shapetree"
html_static_path = ["_static"]
html_extra_path = ["generated/extra"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "try": [], "changelog": []}
html_theme_options = {
    "logo": {
        "text": "shapetree",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
}
copybutton_selector = "div:not(.output) > div.highlight > pre"
