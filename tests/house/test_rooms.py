"""The rooms of papers and press: what they hold, how much, and one name for a topic in a paper's five."""

import ast
import importlib
from pathlib import Path

import pytest

from derived.lab.claims import Claim

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/derived"
PAPERS = SOURCE / "papers"
ROOMS = ("model", "data", "experiments", "claims", "figures")
SLUGS = sorted(path.name for path in PAPERS.iterdir() if (path / "__init__.py").is_file())


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")


def module(slug: str, *parts: str):
    return importlib.import_module(".".join(("derived.papers", slug, *parts)))


def claims_of(slug: str, stem: str) -> list[Claim]:
    """The claims that a file of the room states, in tuples or alone."""
    held = [each for each in vars(module(slug, "claims", stem)).values() if isinstance(each, tuple | Claim)]
    flat = [one for each in held for one in (each if isinstance(each, tuple) else (each,))]
    return [one for one in flat if isinstance(one, Claim)]


def topics(slug: str, room: str) -> set[str]:
    """The files of a room that are about a topic; the others are helpers with a name of their own."""
    stems = {path.stem for path in files(PAPERS / slug / room)}
    if room == "experiments":
        return {one.__module__.rpartition(".")[2] for one in module(slug, "claims").EXPERIMENTS}
    if room == "claims":
        return {stem for stem in stems if claims_of(slug, stem)}
    return stems - {"explorer", "marks", "words"}


@pytest.mark.parametrize("slug", SLUGS)
def test_a_paper_has_its_rooms_and_nothing_beside_them(slug):
    rooms = {path.name for path in (PAPERS / slug).iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {*ROOMS} - {"data"} <= rooms <= {*ROOMS}
    assert {path.stem for path in files(PAPERS / slug)} <= {"exercises"}, "a file outside the rooms"


@pytest.mark.parametrize("slug", SLUGS)
def test_a_room_has_at_most_nine_files_and_a_file_at_most_400_lines(slug):
    for room in ROOMS:
        assert len(files(PAPERS / slug / room)) <= 9, room
    long = [path.name for path in (PAPERS / slug).rglob("*.py") if len(path.read_text("utf-8").splitlines()) > 400]
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
    elif path.parent.name != "claims" and path.parent != ROOT / "src/derived":  # no experiment imports claims
        assert not statements


@pytest.mark.parametrize("slug", SLUGS)
def test_a_topic_has_one_name_in_all_rooms_and_a_test(slug):
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "tests/papers" / slug).glob("test_*.py")}
    for room in ("experiments", "claims", "figures"):
        assert topics(slug, room) - {"explorer"} <= tests


@pytest.mark.parametrize("slug", SLUGS)
def test_claims_rest_on_the_experiments_of_their_own_topic(slug):
    for topic in topics(slug, "claims"):
        for claim in claims_of(slug, topic):
            home = claim.experiment and claim.experiment.__module__
            assert home in (None, f"derived.papers.{slug}.experiments.{topic}"), claim.id


@pytest.mark.parametrize("slug", SLUGS)
def test_no_topic_of_experiments_imports_another(slug):
    holding = {one.__module__.rpartition(".")[2] for one in module(slug, "claims").EXPERIMENTS}
    for path in files(PAPERS / slug / "experiments"):
        tree = ast.walk(ast.parse(path.read_text("utf-8")))
        named = {
            name
            for node in tree
            if isinstance(node, ast.ImportFrom) and node.level == 1
            for name in ([node.module] if node.module else [alias.name for alias in node.names])
        }
        assert not named & (holding - {path.stem}), f"{path.name} imports another topic"


@pytest.mark.parametrize("slug", SLUGS)
def test_claims_are_made_in_the_words_that_all_papers_share(slug):
    for path in files(PAPERS / slug / "claims"):
        calls = [node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        assert not [call for call in calls if isinstance(call, ast.Name) and call.id == "Claim"], path.name
