"""The model file: a fitted tree as JSON, and back.

`model-1.schema.json` and `model-2.schema.json` describe the format. What an older reader would
misread gets another version number; all versions stay readable, and a file has the lowest that can
hold it.
"""

from shapetree.model_file._check import PREFIX, NotAModel
from shapetree.model_file._model import Model
from shapetree.model_file._read import read_model
from shapetree.model_file._write import write_model

__all__ = ["PREFIX", "Model", "NotAModel", "read_model", "write_model"]
