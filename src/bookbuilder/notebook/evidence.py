"""Finds the evidence for each claim of a chapter: statement, run, figures, tests and records.

rests       the labels of the statements that decide a claim: the one whose check cell does (``on_page``), and the one
            whose proof it names
run         the cell that runs a claim's experiment, ``name = run(Experiment)``
decided     the label of the statement whose check cell decides a claim
figure      a figure whose cell reads the name of such a run
test        one that names a statement's label in backticks, or the experiment; else the file of the experiment's topic
record      the rows that the experiment left at a tier, on the status page
place       ``claims/<slug>.html#<id>``
"""

import ast
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bookbuilder.notebook import notebook_claims
from bookbuilder.notebook.statements import Defined, Statement, statements, tests, tests_naming

Cells = Sequence[dict[str, Any]]
Row = dict[str, Any]


class Entry(NamedTuple):
    """One claim in a table: its headline, its rows at the other tiers, and the headlines that amend it."""

    row: Row
    others: list[Row]
    amendments: list[Row]


@dataclass(frozen=True)
class Seen:
    """Where a notebook shows an experiment: the place of the cell that runs it, and the names of its figures."""

    run: int
    figures: tuple[str, ...]


@dataclass(frozen=True)
class Evidence:
    """The evidence for one claim."""

    entry: Entry
    rests: tuple[Statement, ...]
    decided: str
    seen: Seen | None
    source: Defined | None
    tests: tuple[Defined, ...]
    records: dict[str, dict[str, Any]]  # by tier

    @property
    def row(self) -> Row:
        return self.entry.row

    @property
    def rerun(self) -> str:
        """The command that remakes the headline's rows, empty for a claim that cannot be run."""
        row = self.row
        if row["configuration"] is None:
            return ""
        if row["tier"] == "ci":
            return f"derived run {row['paper']} --tier ci --seed 0"
        device = " --device cuda" if row["tier"] == "gpu" else ""
        return f"derived record {row['paper']} {row['experiment']} --tier {row['tier']}{device}"


def resting(notebook: dict[str, Any], rows: Sequence[Row]) -> dict[str, list[str]]:
    """Group the claims by the statement on which they rest."""
    found: dict[str, list[str]] = {}
    for claim, fields in notebook_claims.decided(notebook).items():
        if claim not in found.setdefault(fields["label"], []):
            found[fields["label"]].append(claim)
    for row in rows:
        if row["headline"] and row["proof"] and row["id"] not in found.setdefault(row["proof"], []):
            found[row["proof"]].append(row["id"])
    return found


# The notebook ---------------------------------------------------------------------------------------------------------


def seen(cells: Cells) -> dict[str, Seen]:
    """Find where a notebook runs and draws its experiments, by their names."""
    studies: dict[str, str] = {}
    runs: dict[str, int] = {}
    figures: dict[str, list[str]] = {}
    for place, cell in enumerate(cells):
        tree = _code(cell)
        for experiment in _runs(tree):
            runs.setdefault(experiment, place)
        studies |= _studies(tree)
        figure = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name")
        for name in (node.id for node in ast.walk(tree) if figure and isinstance(node, ast.Name)):
            if name in studies and figure not in figures.setdefault(studies[name], []):
                figures[studies[name]].append(figure)
    return {experiment: Seen(place, tuple(figures.get(experiment, ()))) for experiment, place in runs.items()}


def explored(cells: Cells) -> dict[int, list[str]]:
    """Find the experiments whose rows an explorer reads, by the place of its cell."""
    studies: dict[str, str] = {}
    found: dict[int, list[str]] = {}
    for place, cell in enumerate(cells):
        tree = _code(cell)
        studies |= _studies(tree)
        shown = ["".join(output.get("data", {}).get("text/html", "")) for output in cell.get("outputs", [])]
        if any('class="explorer' in html for html in shown):
            names = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
            found[place] = [*_runs(tree), *(studies[name] for name in names if name in studies)]
    return found


def _code(cell: dict[str, Any]) -> ast.Module:
    """Parse the code of a cell that the page shows; empty for any other."""
    shown = cell["cell_type"] == "code" and "remove-cell" not in cell["metadata"].get("tags", [])
    return _tree("".join(cell["source"]) if shown else "")


@functools.cache  # each cell is asked where it runs, where it draws and what it explores
def _tree(code: str) -> ast.Module:
    try:
        return ast.parse(code)
    except SyntaxError:  # a line of IPython
        return ast.parse("")


@functools.cache  # trees are kept, so each is walked once
def _runs(tree: ast.AST) -> tuple[str, ...]:
    return tuple(_found(tree))


def _found(tree: ast.AST) -> Iterator[str]:
    """Find the experiments of ``run(Experiment)`` and ``run(topic.Experiment)``."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="run"), args=[ast.Name(id=name) | ast.Attribute(attr=name)]):
                yield name


@functools.cache
def _studies(tree: ast.Module) -> dict[str, str]:
    """Find the names bound to the rows of one experiment, as in ``a, b = run(A), run(B).best``."""
    found = {}
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Assign)):
        for target in node.targets:
            both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            for name, value in zip(target.elts, node.value.elts, strict=False) if both else [(target, node.value)]:
                ran = [*_runs(value)]
                if isinstance(name, ast.Name) and len(ran) == 1:
                    found[name.id] = ran[0]
    return found


def sources(root: Path, slug: str) -> dict[str, Defined]:
    """Find where each experiment of a paper is defined."""
    found = {}
    for path in sorted((root / f"src/derived/papers/{slug}").glob("*.py")):
        for line, text in enumerate(path.read_text("utf-8").splitlines(), start=1):
            if match := re.match(r"class (\w+)", text):
                found[match[1]] = Defined(str(path.relative_to(root)), match[1], line)
    return found


def gather(
    root: Path, slug: str, notebook: dict[str, Any], entries: Sequence[Entry], records: Sequence[dict[str, Any]]
) -> list[Evidence]:
    """Collect the evidence of every claim of a chapter, in the order of its entries."""
    rows = [entry.row for entry in entries]
    stated = statements(notebook)
    on, decided = resting(notebook, rows), notebook_claims.decided(notebook)
    shown, defined = seen(notebook["cells"]), sources(root, slug)
    by_label, by_name = tests(root, slug), tests_naming(root, slug, [*defined])
    found = []
    for entry in entries:
        claim, experiment = entry.row["id"], entry.row["experiment"]
        rests = tuple(each for each in stated if claim in on.get(each.label, []))
        named = [test for each in rests for test in by_label.get(each.label, [])] + by_name.get(experiment, [])
        named = named or _topic(root, slug, defined.get(experiment))
        kept = {record["tier"]: record for record in records if record["experiment"] == experiment}
        found.append(
            Evidence(
                entry,
                rests,
                decided[claim]["label"] if claim in decided else "",
                shown.get(experiment),
                defined.get(experiment),
                tuple(dict.fromkeys(named)),
                kept,
            )
        )
    return found


def _topic(root: Path, slug: str, experiment: Defined | None) -> list[Defined]:
    """Find the test file of an experiment's topic, or one that names the experiment outside of its tests."""
    folder = root / f"tests/papers/{slug}"
    if experiment is None:
        return []
    topic = folder / f"test_{Path(experiment.file).name}"
    word = re.compile(rf"\b{experiment.name}\b")
    files = [file for file in [topic, *sorted(folder.glob("test_*.py"))] if file.is_file()]
    found = next((file for file in files if file == topic or word.search(file.read_text("utf-8"))), None)
    return [Defined(str(found.relative_to(root)), "", 1)] if found else []


def bibtex(bibliography: str, key: str) -> str:
    """Find the entry of a bibliography as written."""
    match = re.search(rf"^@\w+\{{{re.escape(key)},.*?^\}}", bibliography, re.S | re.M)
    return match[0] if match else ""
