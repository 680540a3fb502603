"""Starts a chapter in the right shape: a notebook with the sections of every chapter, a package, a test."""

import re
from pathlib import Path

import nbformat

from derived.book.house import House, UserError, write_whole

SECTIONS = {
    "The question": "With the smallest example worked by hand.",
    "Setup": "Symbols and shapes.",
    "Derivation": "Definitions, lemmas, theorems and proofs, each step followed by a cell that checks it.",
    "Mechanism": "The few lines of package code that matter, shown with `source(...)`.",
    "Experiments": "The live and the recorded run in one figure; a negative control that must fail.",
    "What breaks it": "One-line mutations, and what they do to the result.",
    "Claims": "",
    "Exercises": "Each with a folded solution in a cell of its own (tag `solution`) and a visible check.",
    "Going further": "And one explorer.",
}

BOOTSTRAP = """from importlib.util import find_spec

if find_spec("derived") is None:
    raise SystemExit("This notebook needs the book's package:  pip install -e .")"""

PARAMETERS = 'tier = "ci"\nseed = 0\ndevice = "auto"'

IMPORTS = """from derived.lab.claims import study
from derived.lab.page import report
from derived.papers.{slug}.claims import CLAIMS
from derived.papers.{slug}.experiments import First"""

MODULES = {
    "__init__": '"""{title}."""\n',
    "theory": '"""Closed forms.\n\nsymbol  name  meaning  axes\n"""\n',
    "mechanism": '"""The paper\'s mechanism.\n\nsymbol  name  meaning  axes\n"""\n',
    "figures": '"""The figures of the chapter: rows in, a matplotlib figure with its alt text out; no torch."""\n',
    "experiments": '''"""The experiments of the chapter, each a frozen table of sizes and one batched function."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from derived.lab.experiment import Experiment


@dataclass(frozen=True, kw_only=True)
class First(Experiment):
    """Which table or figure of the paper; what a row holds."""

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {{"ci": {{}}}}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return pd.DataFrame({{"gap": [0.0], "bound": [1.0]}})


EXPERIMENTS = (First,)
''',
    "claims": '''"""The chapter's ledger: evidence, criterion and expected verdicts, written before the run."""

from derived.lab.claims import Claim
from derived.lab.stats import worst

from .experiments import First

CLAIMS = (
    Claim(
        id="NEW-1",
        statement="$1=1$.",
        source="ours",
        where="–",
        paper_value="–",
        kind="identity",
        criterion="gap at most its rounding bound",
        experiment=First,
        measure=lambda rows: worst(rows["gap"], rows["bound"]),
        expected={{"ci": "holds"}},
    ),
)
''',
}

TEST = '''"""The theorems of the chapter as tests."""

from derived.papers.{slug}.experiments import EXPERIMENTS


def test_every_experiment_gives_rows_at_its_smallest_tier():
    for experiment in EXPERIMENTS:
        sized = experiment.at(next(iter(experiment.tiers)))
        assert len(sized.run(sized.conditions()[0], seed=0, device="cpu", dtype=sized.dtype))
'''


def _notebook(slug: str, title: str) -> str:
    cells = [
        nbformat.v4.new_markdown_cell(f"# {title}\n\n<!-- at a glance -->"),
        nbformat.v4.new_code_cell(BOOTSTRAP, metadata={"tags": ["hide-input"]}),
        nbformat.v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(IMPORTS.format(slug=slug)),
    ]
    for heading, hint in SECTIONS.items():
        cells.append(nbformat.v4.new_markdown_cell(f"## {heading}\n\n{hint}".strip()))
        if heading == "Experiments":
            cells.append(nbformat.v4.new_code_cell("first = study(First, tier, seed, device)"))
        if heading == "Claims":
            cells.append(nbformat.v4.new_code_cell(f'report("{slug}", CLAIMS, [first])'))
    facts = {
        "paper": {"title": title, "authors": "", "arxiv": "", "bibkey": ""},
        "claim": "",
        "prerequisites": [],
        "minutes_to_read": 30,
        "objectives": [],
    }
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}, "derived": facts}
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata=metadata)) + "\n"


def new(house: House, slug: str) -> list[Path]:
    """Write the files of a new chapter and enter it last in the table of contents; refuse a name in use."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", slug):
        raise UserError(f"{slug!r} is no slug: use small letters, digits and single underscores, like ols_attention")
    package = house.root / "src" / "derived" / "papers" / slug
    if house.notebook(slug).exists() or package.exists():
        raise UserError(f"there is a chapter {slug} already")
    title = slug.replace("_", " ").capitalize()
    files = {house.notebook(slug): _notebook(slug, title)}
    files |= {package / f"{name}.py": text.format(slug=slug, title=title) for name, text in MODULES.items()}
    files[house.root / "tests" / "papers" / f"test_{slug}.py"] = TEST.format(slug=slug)
    toc = house.root / "book" / "_toc.yml"
    lines = toc.read_text("utf-8").splitlines()
    last = max(number for number, line in enumerate(lines) if "notebooks/" in line)
    lines.insert(last + 1, lines[last].split("notebooks/")[0] + f"notebooks/{slug}")
    for path, text in files.items():
        write_whole(path, text)
    write_whole(toc, "\n".join(lines) + "\n")
    return [path.relative_to(house.root) for path in [*files, toc]]
