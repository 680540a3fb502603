"""The files of papers and press: what they hold, how much, and one file for a topic."""

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from derived.lab.claims import Claim
from derived.lab.sources import NO_TOPICS

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/derived"
PAPERS = SOURCE / "papers"
SLUGS = sorted(path.name for path in PAPERS.iterdir() if (path / "__init__.py").is_file())


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")


def module(slug: str, *parts: str) -> ModuleType:
    return importlib.import_module(".".join(("derived.papers", slug, *parts)))


def claims_of(topic: ModuleType) -> list[Claim]:
    """The claims that a topic states, in tuples or alone."""
    held = [each for each in vars(topic).values() if isinstance(each, tuple | Claim)]
    flat = [one for each in held for one in (each if isinstance(each, tuple) else (each,))]
    return [one for one in flat if isinstance(one, Claim)]


def topics(slug: str) -> dict[str, ModuleType]:
    """The modules of a paper that state claims or define experiments; the others are helpers."""
    modules = {path.stem: module(slug, path.stem) for path in files(PAPERS / slug) if path.stem not in NO_TOPICS}
    defining = {one.__module__.rpartition(".")[2] for one in module(slug, "claims").EXPERIMENTS}
    return {name: each for name, each in modules.items() if name in defining or claims_of(each)}


@pytest.mark.parametrize("slug", SLUGS)
def test_a_paper_has_model_and_data_beside_its_topics(slug):
    packages = {path.name for path in (PAPERS / slug).iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert packages <= {"model", "data"}


@pytest.mark.parametrize("slug", SLUGS)
def test_no_module_of_a_paper_has_the_name_of_a_standard_module_or_of_what_the_paper_offers(slug):
    names = {path.stem for path in files(PAPERS / slug)}
    assert not names & {*sys.stdlib_module_names}
    assert not names & {*module(slug).__all__}


@pytest.mark.parametrize("slug", SLUGS)
def test_model_and_data_have_at_most_nine_files_each_of_at_most_400_lines(slug):
    for package in ("model", "data"):
        assert len(files(PAPERS / slug / package)) <= 9, package
        long = [path for path in files(PAPERS / slug / package) if len(path.read_text("utf-8").splitlines()) > 400]
        assert not long


def test_a_room_of_the_press_keeps_to_the_same_budget():
    rooms = [path for path in (SOURCE / "book").rglob("*") if path.is_dir()]
    assert {room.name: len(files(room)) for room in rooms if len(files(room)) > 9} == {}
    every = (SOURCE / "book").rglob("*.py")
    assert not [path.name for path in every if len(path.read_text("utf-8").splitlines()) > 400]


def what_it_does(path: Path) -> list[ast.stmt]:
    """The statements of a file but its docstring."""
    body = ast.parse(path.read_text("utf-8")).body
    assert isinstance(body[0], ast.Expr), f"{path} says nothing of itself"
    return body[1:]


@pytest.mark.parametrize("path", sorted((ROOT / "src/derived").rglob("__init__.py")), ids=lambda p: p.parent.name)
def test_an_init_declares_names_and_computes_nothing(path):
    """So the provenance of records may leave it out (lab/sources.py)."""
    statements = what_it_does(path)
    if path.parent.name in SLUGS:
        assert [ast.unparse(each) for each in statements[:1]] == ["from derived.lab import face"]
        assert ast.unparse(statements[1]).startswith("__getattr__, __dir__, __all__ = face.attach(__name__, ")
        assert len(statements) == 2
    elif path.parent != ROOT / "src/derived":
        assert not statements


@pytest.mark.parametrize("slug", SLUGS)
def test_a_topic_has_a_test_of_its_name(slug):
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "tests/papers" / slug).glob("test_*.py")}
    assert topics(slug).keys() <= tests


@pytest.mark.parametrize("slug", SLUGS)
def test_claims_rest_on_the_experiments_of_their_own_topic(slug):
    for name, topic in topics(slug).items():
        for claim in claims_of(topic):
            home = claim.experiment and claim.experiment.__module__
            assert home in (None, f"derived.papers.{slug}.{name}"), claim.id


@pytest.mark.parametrize("slug", SLUGS)
def test_claims_are_made_in_the_words_that_all_papers_share(slug):
    for path in files(PAPERS / slug):
        calls = [node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        assert not [call for call in calls if isinstance(call, ast.Name) and call.id == "Claim"], path.name
