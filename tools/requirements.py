"""Print the requirements of the package and of one extra, as pyproject.toml states them."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
print(*project["dependencies"], *project["optional-dependencies"][sys.argv[1]], sep="\n")
