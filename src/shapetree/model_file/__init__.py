"""The model file: a fitted tree or forest as JSON, and back.

`model.schema.json` describes the format. What an older reader would misread or refuse gets another
version number.
"""

from shapetree.model_file._check import PREFIX, NotAModel, short
from shapetree.model_file._format import Model
from shapetree.model_file._read import read_model
from shapetree.model_file._write import write_model

__all__ = ["PREFIX", "Model", "NotAModel", "read_model", "short", "write_model"]
