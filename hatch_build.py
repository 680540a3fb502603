"""The version of a build: the release, and a short hash of what the wheel carries.

pip takes two wheels of one version for the same; a notebook downloaded today must not run on the code of last month.
"""

import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).parent


def version() -> str:
    """The release and eight digits of a hash over the package, such as 0.1.0+c0ffee12."""
    [release] = re.findall(r'__version__ = "(.*)"', (ROOT / "src/derived/__init__.py").read_text("utf-8"))
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src/derived").rglob("*")):
        name = path.relative_to(ROOT)
        if path.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in name.parts):
            digest.update(f"{name.as_posix()}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return f"{release}+{digest.hexdigest()[:8]}"
