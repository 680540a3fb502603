"""Writes a parcel as one file for jobs that others host: a script that names what it needs (PEP 723), and a notebook of
one cell around it, for images that bring a torch of their own."""

import base64
import json
import shlex
import textwrap
from pathlib import Path
from string import Template

from derived.book.away.parcel import Parcel
from derived.book.house import write_whole

SCRIPT = Template('''\
# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = $needed
# ///
"""Makes the records of $title, wherever it runs.

    uv run $title.py      make them: finished conditions stay in the folder $$DERIVED_FOLDER and are not run again
    uv run $title.py try  run each experiment at the size of a test, and record nothing

Its log holds the records, which this takes in: $back
"""

import base64
import io
import os
import sys
import tarfile
from pathlib import Path

NAME = "$name"
PARCEL = """
$content
"""


def main():
    code = Path(os.environ.get("DERIVED_FOLDER", "derived-records")).resolve() / NAME / "code"
    if not code.exists():
        fresh = code.with_name(f"code.{os.getpid()}")
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(PARCEL))) as archive:
            archive.extractall(fresh, filter="data")
        fresh.rename(code)
    paths = [str(code / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    os.execv(sys.executable, [sys.executable, "-m", "derived.book.away.there", *sys.argv[1:]])


if __name__ == "__main__":
    main()
''')
CELL = Template("""\
# The torch of this image stays as it is; the log of this cell holds the records.
import sys
from pathlib import Path

Path("$title.py").write_text(r'''$script''')
!{sys.executable} -m pip install --quiet $needed
!{sys.executable} $title.py
""")


def write(folder: Path, parcel: Parcel, title: str, back: str) -> list[Path]:
    """Write the script and the notebook of a parcel into a folder; ``back`` is the command that takes in its log."""
    text = SCRIPT.substitute(
        title=title,
        back=back,
        name=parcel.name,
        needed=json.dumps(parcel.requirements, indent=2).replace("\n", "\n# "),
        content="\n".join(textwrap.wrap(base64.b64encode(parcel.content).decode(), 120)),
    )
    others = shlex.join(each for each in parcel.requirements if not each.startswith("torch"))
    source = CELL.substitute(title=title, script=text, needed=others)
    cell = {
        "cell_type": "code",
        "execution_count": None,
        "id": "record",
        "metadata": {},
        "outputs": [],
        "source": source,
    }
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "accelerator": "GPU"}
    notebook = {"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    files = {folder / f"{title}.py": text, folder / f"{title}.ipynb": json.dumps(notebook, indent=1) + "\n"}
    for path, content in files.items():
        write_whole(path, content)
    return [*files]
