"""The homework that carries the package in itself runs where nothing but numpy and torch is."""

import base64
import io
import json
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from derived.book.deliver.carrying import carrying
from derived.lab.absent import Absent

HELD = ("numpy", "numpy.libs", "torch", "torchgen", "functorch", "typing_extensions.py", "sympy", "mpmath", "networkx")
RUN = """
import importlib.util, json, sys
for name in ("derived", "scipy", "jaxtyping", "pandas"):
    assert importlib.util.find_spec(name) is None, name
names = {}
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]), names)
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    """A Python with numpy and torch, and what torch itself brings."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    (into,) = folder.glob("lib/python*/site-packages")
    import torch

    site = Path(torch.__file__).parents[1]
    for name in (*HELD, "jinja2", "markupsafe", "fsspec", "filelock", "setuptools", "nvidia", "triton"):
        if (site / name).exists():
            (into / name).symlink_to(site / name)
    return folder / "bin/python"


def answered(slug: str, label: str, answers: list[str]):
    cells = [
        new_markdown_cell("# Homework"),
        new_code_cell("asks for the package"),
        new_code_cell(f"import math\nimport torch\nfrom derived.papers.{slug} import exercises"),
        *(new_code_cell(f"exercises.check({label!r}, {each})") for each in answers),
    ]
    return new_notebook(cells=cells)


@pytest.mark.parametrize(
    ("slug", "label", "answers", "said"),
    [
        ("sinkhorn", "sk-ex-causal", ["lambda alpha, beta: beta - alpha", "lambda alpha, beta: beta", "..."], "rnn"),
        (
            "in_place_ttt",
            "ipt-ex-decay",
            ["lambda rho, i, j: rho ** (i - 1 - j)", "lambda **k: 1 / 0"],
            "rn",
        ),
    ],
)
def test_it_judges_answers_where_nothing_else_is(tmp_path, bare, slug, label, answers, said):
    made = carrying(slug, answered(slug, label, answers))
    file = tmp_path / "one.ipynb"
    nbformat.write(made, file)
    assert file.stat().st_size < 400_000
    (tmp_path / "run.py").write_text(RUN)
    done = subprocess.run(
        [bare, "-I", tmp_path / "run.py", file], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert [line[0] for line in done.stdout.splitlines()] == [*said]


def test_no_answer_is_in_it():
    held = json.dumps(carrying("sinkhorn", answered("sinkhorn", "sk-ex-causal", ["..."])))
    assert "_below" not in held
    raw = base64.b85decode(re.search(r"held = '(.*?)'\\n", held)[1].replace("\\\\", "\\").encode())
    with zipfile.ZipFile(io.BytesIO(raw)) as opened:
        names = opened.namelist()
        text = opened.read("derived/papers/sinkhorn/exercises.py").decode()
    assert "Sealed(" in text
    assert "def _below" not in text
    assert any("jaxtyping" in name and "licen" in name.lower() for name in names)
    assert not any("claims" in name or "experiments" in name for name in names)


def test_what_is_absent_can_be_imported_and_says_so_when_it_is_called():
    scipy = Absent("scipy")
    with pytest.raises(ImportError, match="pip install scipy"):
        scipy.special.entr(1)
    assert "scipy" not in sys.modules or not isinstance(sys.modules["scipy"], Absent)
