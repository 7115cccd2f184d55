"""Check that a wheel is small and holds nothing but the package."""

import re
import sys
import zipfile
from pathlib import Path

MAX_BYTES = 5_000_000
KINDS = "py|pyi|typed|html|js|json|so|pyd"
ALLOWED = re.compile(rf"shapetree/.+\.({KINDS})|shapetree-[^/]+\.dist-info/.+")

wheel = Path(sys.argv[1])
size = wheel.stat().st_size
strangers = [n for n in zipfile.ZipFile(wheel).namelist() if not ALLOWED.fullmatch(n)]
if size > MAX_BYTES or strangers:
    sys.exit(f"{wheel.name}: {size} bytes (at most {MAX_BYTES}); does not belong: {strangers}")
print(f"{wheel.name}: {size} bytes, nothing but the package")
