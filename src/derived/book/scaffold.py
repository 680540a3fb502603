"""Starts a chapter in the right shape: a notebook with the sections of every chapter, five rooms, a test, lectures."""

import keyword
import re
from pathlib import Path

import nbformat

from derived.book.house import House, UserError, write_whole

# The text of each section; the checks of derived.book.edition pass as it stands.
SECTIONS = {
    "In ten minutes": """The question, one picture that shows the answer, up to three boxed results, what is not known.

:::{{admonition}} A square is never negative
:class: ours
Whatever the number, its square is zero or more ({{prf:ref}}`{slug}-square`).
:::""",
    "The question": "With the smallest example worked by hand.",
    "Setup": "Symbols and shapes.",
    "Derivation": """Definitions, lemmas, theorems and proofs, each step followed by a cell that checks it.

```{{prf:theorem}} The square of one
:label: {slug}-square
:class: ours
$1^2 = 1$.
```

```{{prf:proof}}
One is neutral.
```""",
    "Mechanism": "The few lines of package code that matter, shown with `source(...)`.",
    "Experiments": "The live and the recorded run in one figure; a negative control that must fail.",
    "What breaks it": "One-line mutations, and what they do to the result.",
    "Claims": "",
    "Exercises": "Each with a folded solution in a cell of its own (tag `solution`) and a visible check.",
    "Take-away": "What a reader should keep; going further; one explorer.",
}

BOOTSTRAP = """from importlib.util import find_spec

if find_spec("derived") is None:
    raise SystemExit("This notebook needs the book's package:  pip install -e .")"""

PARAMETERS = 'tier = "ci"\nseed = 0\ndevice = "auto"'

IMPORTS = """from derived.lab.page import check, report, studies
from derived.papers.{slug} import square
from derived.papers.{slug}.claims import CLAIMS
from derived.papers.{slug}.experiments.first import First

run = studies(tier, seed, device)"""

FACE = '''"""{title}.

>>> from derived.papers.{slug} import square
>>> square(3.0)
9.0
"""

import lazy_loader

# What a stranger imports: 8 to 20 names, each loaded on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={{"model.theory": ["square"]}})
'''

THEORY = '''"""Closed forms.

symbol  name  meaning  axes
x       x     a number
"""


def square(x: float) -> float:
    """The square x^2 of a number. Source: ours.

    >>> square(2.0)
    4.0
    """
    return x * x
'''

EXPERIMENTS = '''"""What the topic measures: frozen sizes and one batched function an experiment.

gap    what was measured less what the theory says
bound  what rounding allows
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from derived.lab.experiment import Experiment

from ..model.theory import square


@dataclass(frozen=True, kw_only=True)
class First(Experiment):
    """Which table or figure of the paper; what a row holds."""

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {{"ci": {{}}}}
    deterministic: ClassVar[Mapping[str, float]] = {{"gap": 1e-12}}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return pd.DataFrame({{"gap": [square(1.0) - 1.0], "bound": [1.0]}})
'''

CLAIMS = '''"""The claims of the topic: evidence and criterion, written before the run."""

from derived.lab import measure
from derived.lab.claims import identity

from ..experiments.first import First

CLAIMS = (
    identity("NEW-1", "The square of $1$ is $1$.", First, measure.worst(), plain="One squared is one.", source="paper"),
)
'''

LEDGER = '''"""The chapter's claims and the experiments that they rest on."""

from derived.lab.claims import collect

CLAIMS, EXPERIMENTS = collect(__name__)
'''

FIGURES = '''"""The figures of the topic: rows in, a matplotlib figure out, its alt text computed from the data."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import COLOURS


def gaps(rows: pd.DataFrame) -> Figure:
    """Gaps against their bounds."""
    figure, ax = plt.subplots(figsize=(4, 3))
    ax.plot(rows["bound"], rows["gap"], "o", color=COLOURS[0])
    ax.set(xlabel="bound", ylabel="gap")
    figure.set_label(f"{{len(rows)}} gaps, the largest {{rows['gap'].max():.1e}}")
    return figure
'''

TEST = '''"""The theorems of the topic as tests, and its experiments at their smallest size."""

from derived.papers.{slug} import square
from derived.papers.{slug}.experiments.first import First

EXPERIMENTS = (First,)
SMALL = {{}}


def test_the_square_of_one():
    """`{slug}-square`."""
    assert square(1.0) == 1.0


def test_the_square_of_a_sum():
    assert square(3.0) == square(1.0) + 2 * 1.0 * 2.0 + square(2.0)


def test_every_gap_is_within_its_bound(rows):
    assert (rows[First]["gap"].abs() <= rows[First]["bound"]).all()
'''

LECTURES = """# The lectures of the chapter. See src/derived/book/lectures.py for what a step may say.
- name: On the board, the smallest example
  minutes: 15 25 50
  say: Let the class guess before anything is defined.
- show: {slug}-square
  minutes: 20 40 80
- name: Pause
  minutes: 0 0 10
- name: Questions
  minutes: 15 25 40
"""

#: The five rooms of a paper's package (data only where a paper has any) and its tests, a topic with one name in all;
#: and the lectures.
FILES = {
    "src/derived/papers/{slug}/__init__.py": FACE,
    "src/derived/papers/{slug}/model/__init__.py": '"""Theory and mechanism: what the paper is about."""\n',
    "src/derived/papers/{slug}/model/theory.py": THEORY,
    "src/derived/papers/{slug}/experiments/__init__.py": '"""What is measured: frozen sizes, run() -> rows."""\n',
    "src/derived/papers/{slug}/experiments/first.py": EXPERIMENTS,
    "src/derived/papers/{slug}/claims/__init__.py": LEDGER,
    "src/derived/papers/{slug}/claims/first.py": CLAIMS,
    "src/derived/papers/{slug}/figures/__init__.py": '"""Rows in, a figure out; no torch."""\n',
    "src/derived/papers/{slug}/figures/first.py": FIGURES,
    "tests/papers/{slug}/test_first.py": TEST,
    "book/lectures/{slug}.yml": LECTURES,
}


def _notebook(slug: str, title: str) -> str:
    cells = [
        nbformat.v4.new_markdown_cell(f"# {title}\n\n<!-- at a glance -->"),
        nbformat.v4.new_code_cell(BOOTSTRAP, metadata={"tags": ["hide-input"]}),
        nbformat.v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(IMPORTS.format(slug=slug)),
    ]
    for heading, hint in SECTIONS.items():
        cells.append(nbformat.v4.new_markdown_cell(f"## {heading}\n\n{hint.format(slug=slug)}".strip()))
        code = {
            "Derivation": "check(square(1.0) - 1.0, 1e-15)",
            "Experiments": "first = run(First)",
            "Claims": f'report("{slug}", CLAIMS, run)',
        }
        if heading in code:
            cells.append(nbformat.v4.new_code_cell(code[heading]))
    facts = {
        "edition": 2,
        "paper": {"title": title, "authors": "", "arxiv": "", "bibkey": ""},
        "claim": "",
        "prerequisites": [],
        "objectives": [],
        "rests": {f"{slug}-square": "NEW-1"},
    }
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}, "derived": facts}
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata=metadata)) + "\n"


def new(house: House, slug: str) -> list[Path]:
    """Write the files of a new chapter and enter it last in the table of contents; refuse a name in use."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", slug) or keyword.iskeyword(slug):
        raise UserError(
            f"{slug!r} is no slug: use small letters, digits and single underscores, like ols_attention, "
            "and no word of Python"
        )
    title = slug.replace("_", " ").capitalize()
    files = {house.notebook(slug): _notebook(slug, title)}
    files |= {house.root / name.format(slug=slug): text.format(slug=slug, title=title) for name, text in FILES.items()}
    there = [path.relative_to(house.root) for path in files if path.exists()]
    if there:
        raise UserError(f"there is a chapter {slug} already: {there[0]}; remove it, or take another name")
    toc = house.root / "book" / "_toc.yml"
    lines = toc.read_text("utf-8").splitlines()
    last = max(number for number, line in enumerate(lines) if "notebooks/" in line)
    lines.insert(last + 1, lines[last].split("notebooks/")[0] + f"notebooks/{slug}")
    for path, text in files.items():
        write_whole(path, text)
    write_whole(toc, "\n".join(lines) + "\n")
    return [path.relative_to(house.root) for path in [*files, toc]]
