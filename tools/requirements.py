"""Print the requirements of the package and of one extra, as pyproject.toml states them.

    python tools/requirements.py EXTRA [--oldest]

With `--oldest`, each with the least version that is allowed.
"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
requirements = [*project["dependencies"], *project["optional-dependencies"][sys.argv[1]]]
if "--oldest" in sys.argv[2:]:
    requirements = [requirement.replace(">=", "==") for requirement in requirements]
print(*requirements, sep="\n")
