"""The press on a toy book: the real pages around one small chapter that has everything a chapter may have."""

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from derived.book import render

ROOT = Path(__file__).parents[2]
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20"><path d="M1 19L39 1" stroke="#222222"/></svg>'
FACTS = {
    "paper": {
        "title": "Ordinary Least Squares is a Special Case of Transformer",
        "authors": "Xiaojun Tan and Yuchen Zhao",
        "arxiv": "2604.13656",
        "bibkey": "tan2026ols",
    },
    "claim": "One layer of linear attention has weights whose forward pass is $X\\hat B$, the least-squares fit.",
    "prerequisites": ["linear algebra: the singular value decomposition", "a first course in regression"],
    "minutes_to_read": 45,
    "objectives": ["derive the weights from the spectrum of $X^\\top X$", "say what such a layer cannot do"],
}


def row(claim: str, verdict: str, **changes) -> dict:
    """A ledger row of the toy chapter."""
    base = {
        "id": claim,
        "paper": "toy",
        "kind": "identity",
        "statement": "The forward pass equals the fitted values, $\\hat Y = X\\hat B$.",
        "source": "paper",
        "where": "§2.1",
        "paper_value": "equality",
        "tier": "ci",
        "device": "cpu",
        "value": 0.31,
        "low": None,
        "high": None,
        "n": 64,
        "criterion": "worst gap $\\le 1$ in units of $8\\,n\\epsilon\\kappa$",
        "verdict": verdict,
        "expected": verdict,
        "reason": "",
        "amends": None,
        "headline": True,
    }
    return base | changes


ROWS = [
    row("TOY-1", "holds"),
    row("TOY-2", "fails", kind="counterexample", reason="refuted by a witness"),
    row("TOY-3", "reported", kind="measured", value=1.28e-05, low=1.1e-05, high=1.4e-05, criterion="reported"),
    row("TOY-2.a", "holds", amends="TOY-2", source="ours", paper_value="–"),
    row("TOY-4", "fails", source="digest", reason="as retold; the paper's own text was not seen"),
    row("TOY-5", "not run", tier="gpu", value=None, n=None, device=None, reason="not recorded at gpu yet"),
    row("TOY-6", "undecided", kind="statistic", value=0.97, low=0.94, high=1.01, n=20, expected="holds"),
    row("TOY-6", "holds", tier="cpu", kind="statistic", value=0.99, low=0.98, high=1.0, n=2000, headline=False),
]
RECORDS = [
    {
        "experiment": "Reach",
        "tier": "cpu",
        "date": "2026-11-02T08:00:00+00:00",
        "device": "a desktop CPU",
        "seconds": 412.0,
        "peak_memory_mb": 1210.0,
        "state": "unchanged",
        "reasons": [],
    },
    {
        "experiment": "Capacity",
        "tier": "gpu",
        "date": None,
        "device": None,
        "seconds": None,
        "peak_memory_mb": None,
        "state": "missing",
        "reasons": ["derived record toy Capacity --tier gpu"],
    },
]
FINDING = {
    "chapter": "toy",
    "key": "0123",
    "tier": "ci",
    "seed": 0,
    "device": "cpu",
    "device_name": "2 cores of an x86-64 CPU",
    "seconds": 41.3,
    "peak_memory_mb": 690.0,
    "date": "2026-11-20T09:30:00+00:00",
    "versions": {"python": "3.11.2", "torch": "2.13.0"},
    "rows": ROWS,
    "records": RECORDS,
}
PLOTLY = {
    "data": [{"type": "scatter", "x": [0, 1, 2], "y": [0, 1, 4], "name": "curve"}],
    "layout": {
        "meta": {"alt": "A parabola that widens as beta grows."},
        "template": {"layout": {"colorway": ["red"]}},
        "xaxis": {"title": {"text": "x"}},
        "sliders": [
            {
                "currentvalue": {"prefix": "beta = "},
                "steps": [
                    {"label": str(b), "method": "animate", "args": [[str(b)], {"mode": "immediate"}]} for b in (1, 2, 3)
                ],
            }
        ],
    },
    "frames": [{"name": str(b), "data": [{"y": [0, b, 4 * b]}]} for b in (1, 2, 3)],
}
THEOREM = """## The identity

:::{admonition} The construction
:class: paper
Put the inverse square root of the covariance into all three weights {cite}`tan2026ols`.
:::

:::{admonition} Rank
:class: ours
Full column rank is not needed: a pseudo-inverse does.
:::

```{prf:theorem} Attention is a projection
:label: toy-theorem
With $L = V\\Lambda^{-1/2}$ the attention matrix is the hat matrix, $A = H$.
```

```{prf:proof}
By {eq}`toy-eq`, $A = \\tfrac1n X L L^\\top X^\\top = X(X^\\top X)^{-1}X^\\top$.
```

$$
A = \\frac1n (XL)(XL)^\\top = \\frac1n \\sum_{i=1}^{r} \\lambda_i^{-1} X v_i v_i^\\top X^\\top
$$ (toy-eq)

{prf:ref}`toy-theorem` is checked below, and {numref}`toy-figure` shows both.
"""
EXERCISE = """## Exercises

```{exercise} Trace
:label: toy-exercise
Show that $\\operatorname{tr} A = p$.
```
"""
SOLUTION = """```{solution} toy-exercise
:label: toy-solution
:class: dropdown
The trace of a projector is its rank.
```"""


def cells() -> list:
    """A chapter's cells as papermill leaves them."""
    prefix = "application/papermill.record/"
    glued = new_output("display_data", {f"{prefix}text/plain": "0.3125"})
    glued.metadata["scrapbook"] = {"name": "toy-gap", "mime_prefix": prefix}
    figure = new_output("display_data", {"image/svg+xml": SVG, "text/plain": "a line"})
    figure.metadata["image/svg+xml"] = {"alt": "A rising line,\nfrom 0 to 1.", "provenance": "live at tier ci, seed 0"}
    caption = {"figure": {"caption": "The attention matrix, $A$.", "name": "toy-figure"}}
    findings = {"rows": ROWS, "records": RECORDS}
    install = 'try:\n    import derived\nexcept ModuleNotFoundError:\n    print("pip install -e .")'
    return [
        new_markdown_cell("# Least squares in one layer\n\n<!-- at a glance -->"),
        new_code_cell(install),
        new_code_cell('tier = "ci"\nseed = 0\ndevice = "auto"', metadata={"tags": ["parameters"]}),
        new_markdown_cell(THEOREM),
        new_code_cell("glue('toy-gap', gap)", outputs=[glued], metadata={"tags": ["remove-output"]}),
        new_code_cell("show(figure)", outputs=[figure], metadata={"mystnb": caption}),
        new_markdown_cell("The worst gap is {glue:text}`toy-gap:.2f` bounds."),
        new_code_cell(
            "explorer(figure)", outputs=[new_output("display_data", {"application/vnd.plotly.v1+json": PLOTLY})]
        ),
        new_markdown_cell(EXERCISE),
        new_markdown_cell(SOLUTION, metadata={"tags": ["solution"]}),
        new_code_cell("assert True  # the check", execution_count=7),
        new_markdown_cell("## Claims"),
        new_code_cell(
            "report(claims)",
            outputs=[new_output("display_data", {render.FINDINGS: findings, "text/html": "<p>old</p>"})],
        ),
    ]


def write_chapter(root: Path, more: str = "") -> None:
    """The toy chapter: source, executed copy, findings. ``more`` is a last markdown cell."""
    notebook = new_notebook(cells=[*cells(), *([new_markdown_cell(more)] if more else [])])
    notebook.metadata |= {
        "derived": FACTS,
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    }
    for path in (root / "notebooks/toy.ipynb", root / "_build/executed/notebooks/toy.ipynb"):
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
    (root / "_build/findings").mkdir(exist_ok=True)
    (root / "_build/findings/toy.json").write_text(json.dumps(FINDING), "utf-8")


def write_book(root: Path) -> Path:
    """A checkout in small: the real pages and settings, one chapter, a package of one file."""
    shutil.copytree(ROOT / "book", root / "book")
    shutil.copyfile(ROOT / "_config.yml", root / "_config.yml")
    toc = (root / "book/_toc.yml").read_text("utf-8").splitlines()
    first = next(i for i, line in enumerate(toc) if "notebooks/" in line)
    toc = [line for i, line in enumerate(toc) if "notebooks/" not in line or i == first]
    toc[first] = toc[first].split("notebooks/")[0] + "notebooks/toy"
    (root / "book/_toc.yml").write_text("\n".join(toc) + "\n", "utf-8")
    (root / "src/derived").mkdir(parents=True)
    (root / "src/derived/__init__.py").write_text('"""Toy."""\n', "utf-8")
    (root / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "toy-derived"\nversion = "0.1"\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["src/derived"]\n',
        "utf-8",
    )
    write_chapter(root)
    return root


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy book, rendered once."""
    root = write_book(tmp_path_factory.mktemp("book"))
    render.render(root)
    return root


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A toy book that a test may change."""
    return write_book(tmp_path)


def page(root: Path, name: str) -> str:
    return (root / "_build/html" / name).read_text("utf-8")
