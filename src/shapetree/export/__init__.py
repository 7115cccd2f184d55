"""Ways to take a fitted tree away; they read only its `TreeView`."""

from shapetree.export._dot import export_dot
from shapetree.export._html import export_html
from shapetree.export._js import export_js
from shapetree.export._onnx import export_onnx
from shapetree.export._python import export_python
from shapetree.export._sql import SqlExpression, export_sql
from shapetree.export._text import export_text

__all__ = [
    "SqlExpression",
    "export_dot",
    "export_html",
    "export_js",
    "export_onnx",
    "export_python",
    "export_sql",
    "export_text",
]
