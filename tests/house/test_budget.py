"""Budgets of code lines, words and cells: ceilings, and the numbers of today, which may only fall.

``python tests/house/test_budget.py`` rewrites ``budget.yml``: by key today's number, the lowest so far, and the ceiling
where one is set. A number above its lowest needs a sentence under ``why``: what the reader gets, and what was
deleted for it. The ceiling of a folder binds once it was reached, a chapter's once its notebook says ``edition: 3``.

A code line is neither empty nor part of a docstring or comment; scripts, templates, style sheets and YAML count whole.
"""

import ast
import functools
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests/house/budget.yml"
REWRITE = "python tests/house/test_budget.py"
FOLDERS = {"src": 27_000, "src/derived/lab": 2_100, "src/bookbuilder": 5_000, "tests": 22_000, "bench": 1_000}
CHAPTER = {"paper": 2_000, "tests": 1_500, "words": 7_500, "code cells": 60, "statements": 14, "figures": 8}
PLAIN = (".ci/*", "*.js", "*.html", "*.css", "*.yml")  # counted whole
SKIPPED = ("results/", "tests/house/budget.yml")
STATEMENT = r"\{prf:(?:theorem|lemma|proposition|corollary|definition|assumption|conjecture|remark|algorithm)\}"


@functools.cache
def code_lines(path: Path) -> int:
    """The lines of a Python file that are not empty, without docstrings and comments."""
    text = path.read_text("utf-8")
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [*ast.walk(ast.parse(text))]
    documented = [node for node in nodes if isinstance(node, owners) and ast.get_docstring(node)]
    skipped = {line for node in documented for line in range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    texts = [node for node in nodes if isinstance(node, ast.Constant | ast.JoinedStr)]  # whole, with their empty lines
    within = {line for node in texts for line in range(node.lineno, node.end_lineno + 1)}
    held = {number for number, line in enumerate(text.splitlines(), 1) if line.strip() and line.lstrip()[0] != "#"}
    return len((held | within) - skipped)


def tracked(*patterns: str) -> list[Path]:
    """The files of git below folders, or that match patterns, and are there; records are left out."""
    names = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.splitlines() if not name.startswith(SKIPPED) and (ROOT / name).is_file()]


def python(*folders: str) -> int:
    """The code lines of Python below folders."""
    return sum(code_lines(path) for path in tracked(*(f"{folder}/*.py" for folder in folders)))


def of_notebook(notebook: dict) -> dict[str, int]:
    """Words, code cells, numbered statements and figures of a chapter."""
    cells = [("".join(cell["source"]), cell) for cell in notebook["cells"]]
    text = "\n\n".join(source for source, cell in cells if cell["cell_type"] == "markdown")
    code = [cell for _, cell in cells if cell["cell_type"] == "code"]
    return {
        "words": len(re.findall(r"[A-Za-z']{2,}", re.sub(r"\{[\w:]+\}`[^`]*`", " ", text))),
        "code cells": len(code),
        "statements": len(re.findall(STATEMENT, text)),
        "figures": sum("figure" in cell["metadata"].get("mystnb", {}) for cell in code),
    }


def today() -> dict[str, list[int]]:
    """Every number that has a budget, with its ceiling where it binds."""
    found = {folder: [python(folder), ceiling] for folder, ceiling in FOLDERS.items()}
    for path in tracked("notebooks/*.ipynb"):
        slug, notebook = path.stem, json.loads(path.read_text("utf-8"))
        second = notebook["metadata"].get("derived", {}).get("edition", 1) >= 3
        numbers = {"paper": python(f"src/derived/papers/{slug}"), "tests": python(f"tests/papers/{slug}")}
        for name, number in (numbers | of_notebook(notebook)).items():
            found[f"{slug}: {name}"] = [number, CHAPTER[name]][: 1 + second]
    return found | {each: [sum(path.read_bytes().count(b"\n") for path in tracked(each))] for each in PLAIN}


def faults(numbers: dict[str, list[int]], file: dict) -> list[str]:
    """One line per number that differs from the file, is raised without a reason, or is above its binding ceiling."""
    found = []
    for key, (number, *ceiling) in numbers.items():
        now, lowest, *_ = file["numbers"].get(key, [0, 0])
        if number > now:
            found.append(f"{key}: {number}, and {now} are allowed; delete something, or say why and run: {REWRITE}")
        elif number < now:
            found.append(f"{key}: {number}, less than the {now} of the file; lower it: {REWRITE}")
        elif number > lowest and len(str(file["why"].get(key, "")).split()) < 5:
            found.append(
                f"{key}: {number}, raised from {lowest}; say under `why` what for, and what was deleted for it"
            )
        if ceiling and number > ceiling[0] and lowest <= ceiling[0]:  # it binds once it was reached
            found.append(f"{key}: {number}, and the ceiling is {ceiling[0]}")
    return found + [f"{key}: is counted no more; run: {REWRITE}" for key in file["numbers"] if key not in numbers]


def renewed(numbers: dict[str, list[int]], file: dict) -> str:
    """The text of the file with today's numbers; reasons stay while their number is raised."""
    lowest = {
        key: min(number, *file["numbers"].get(key, [number])[1:2], number) for key, (number, *_) in numbers.items()
    }
    why = {key: text for key, text in file["why"].items() if numbers.get(key, [0])[0] > lowest.get(key, 0)}
    lines = [f"  {json.dumps(key)}: {[number, lowest[key], *ceiling]}" for key, (number, *ceiling) in numbers.items()]
    head = "# key: [today, lowest so far, ceiling]; rewritten by: " + REWRITE
    return "\n".join(
        [head, yaml.safe_dump({"why": why}, allow_unicode=True, width=100).rstrip(), "numbers:", *lines, ""]
    )


def written() -> dict:
    """What the file holds; nothing where it is not there."""
    return yaml.safe_load(FILE.read_text("utf-8")) if FILE.is_file() else {"why": {}, "numbers": {}}


def test_every_number_is_that_of_the_file_and_below_its_ceiling():
    assert faults(today(), written()) == []


CASES = {
    "6, and 5 are allowed": ([6, 9], [5, 5]),
    "less than the 5 of the file": ([4, 9], [5, 5]),
    "raised from 5; say under `why`": ([6, 9], [6, 5]),
    "the ceiling is 7": ([8, 7], [8, 7]),
}


@pytest.mark.parametrize("fault", CASES)
def test_a_number_that_moves_and_a_ceiling_that_binds_are_faults(fault):
    number, file = CASES[fault]
    assert fault in "".join(faults({"bench": number}, {"why": {}, "numbers": {"bench": file}}))
    assert faults({"bench": [8, 7]}, {"why": {}, "numbers": {"bench": [8, 8]}}) == []  # never was below its ceiling


def test_a_raise_with_a_reason_is_allowed_and_the_lowest_number_stays():
    file = {"why": {"bench": "a race of exact solvers, for two that were deleted"}, "numbers": {"bench": [6, 5]}}
    assert faults({"bench": [6]}, file) == []
    assert yaml.safe_load(renewed({"bench": [6]}, file)) == file


if __name__ == "__main__":
    FILE.write_text(renewed(today(), written()), "utf-8")
    print(f"wrote {FILE.relative_to(ROOT)}")
