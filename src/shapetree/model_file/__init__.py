"""The model file: a fitted tree or forest as JSON, and back.

`model_schema` describes the format. What an older reader would misread or refuse gets another
version number.
"""

from shapetree.model_file._check import PREFIX, NotAModel, short
from shapetree.model_file._format import Model, model_schema
from shapetree.model_file._read import read_model
from shapetree.model_file._write import write_model

__all__ = ["PREFIX", "Model", "NotAModel", "model_schema", "read_model", "short", "write_model"]
