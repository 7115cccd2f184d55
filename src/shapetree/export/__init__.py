"""Ways to take a fitted tree away; they read only its `TreeView`."""

from shapetree.export._text import export_text

__all__ = ["export_text"]
