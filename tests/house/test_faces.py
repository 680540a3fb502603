"""What a stranger imports from a paper: few names, loaded on first use, each with an example that runs."""

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SLUGS = sorted(path.parent.name for path in (ROOT / "src/derived/papers").glob("*/__init__.py"))


def face(slug: str):
    return importlib.import_module(f"derived.papers.{slug}")


NAMES = [(slug, name) for slug in SLUGS for name in getattr(face(slug), "__all__", ())]


def run_examples(thing, name: str) -> int:
    """How many examples the docstring of a thing has; AssertionError where one gives something else."""
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    home = importlib.import_module(getattr(thing, "__module__", None) or thing.__name__)
    for test in finder.find(thing, name, module=home, extraglobs=dict(vars(home))):
        runner.run(test)
    found = runner.summarize(verbose=False)
    assert not found.failed, f"{found.failed} examples of {name} give something else"
    return found.attempted


@pytest.mark.parametrize("slug", SLUGS)
def test_a_paper_offers_2_to_20_names_and_an_example(slug):
    assert 2 <= len(face(slug).__all__) <= 20
    assert run_examples(face(slug), slug), "the paper's docstring has no example"


@pytest.mark.parametrize(("slug", "name"), NAMES)
def test_a_public_name_has_words_and_an_example_that_runs(slug, name):
    thing = getattr(face(slug), name)
    words = thing.__doc__ or ""
    assert len(words.split(">>>")[0].split()) >= 8, "too few words"
    assert run_examples(thing, name), "no example"


def test_a_face_loads_nothing_until_it_is_asked():
    code = "; ".join(
        ["import sys", *(f"import derived.papers.{slug}" for slug in SLUGS), "print('torch' in sys.modules)"]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
