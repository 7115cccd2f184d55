"""Check that a wheel is small and holds nothing but the package."""

import re
import sys
import zipfile
from pathlib import Path

MAX_BYTES = 8_000_000
KINDS = "py|typed|html|js|json|so|pyd"
# Repaired wheels also hold the runtime of OpenMP.
BUNDLED = r"shapetree\.libs/.+|shapetree/\.dylibs/.+"
ALLOWED = re.compile(rf"shapetree/.+\.({KINDS})|{BUNDLED}|shapetree-[^/]+\.dist-info/.+")

wheel = Path(sys.argv[1])
size = wheel.stat().st_size
files = [info.filename for info in zipfile.ZipFile(wheel).infolist() if not info.is_dir()]
strangers = [name for name in files if not ALLOWED.fullmatch(name)]
if size > MAX_BYTES or strangers:
    sys.exit(f"{wheel.name}: {size} bytes (at most {MAX_BYTES}); does not belong: {strangers}")
print(f"{wheel.name}: {size} bytes, nothing but the package")
