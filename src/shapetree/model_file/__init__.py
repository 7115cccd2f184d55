"""The model file: a fitted tree as JSON, and back.

`model-1.schema.json` describes the format. A format with further members gets another version
number; all versions stay readable.
"""

from shapetree.model_file._check import PREFIX, NotAModel
from shapetree.model_file._model import Model
from shapetree.model_file._read import read_model
from shapetree.model_file._write import write_model

__all__ = ["PREFIX", "Model", "NotAModel", "read_model", "write_model"]
