"""Every numbered result of a notebook is borne by a test: its label stands in backticks in a test file of the page."""

import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULT = re.compile(r"^[`:]{3,}\{prf:(?:theorem|lemma|proposition|corollary)\}[^\n]*\n((?::[^\n]*\n)*)", re.MULTILINE)


def results(notebook: Path) -> list[str]:
    """The labels of the theorems, lemmas, propositions and corollaries; a result without a label fails."""
    cells = nbformat.read(notebook, as_version=4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    options = RESULT.findall(text)
    labels = [re.search(r"^:label: *(\S+)", each, re.MULTILINE) for each in options]
    assert all(labels), f"{notebook.name} has a numbered result without a label"
    return [label[1] for label in labels]


@pytest.mark.parametrize("notebook", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_numbered_result_is_borne_by_a_test(notebook):
    files = [
        *(ROOT / "tests/papers").glob(f"test_{notebook.stem}*.py"),
        *(ROOT / "tests/papers" / notebook.stem).glob("*.py"),
    ]
    tests = "\n".join(path.read_text("utf-8") for path in files)
    missing = [label for label in results(notebook) if f"`{label}`" not in tests]
    assert not missing, f"no test bears {', '.join(missing)}"
