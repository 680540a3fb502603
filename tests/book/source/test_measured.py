"""How a claim is measured, read from its source: what changes the hash, and what does not."""

import importlib
from pathlib import Path

import pytest
from press import ROOT

import derived.papers
from derived.book.source import measured

SLUGS = sorted(path.parent.name for path in Path(derived.papers.__path__[0]).glob("*/__init__.py"))
HELPERS = '''"""Helpers."""

LIMIT = 0.5


def far(rows):
    """How far."""
    return rows.gap.mean() > LIMIT
'''
TOPIC = '''"""The topic."""

from .helpers import far


def ours(id, **facts):
    return statistic(id, "A sentence.", Toy, measure.mean("gap", "layer > 0"), "gap", at_most(1), **facts)


def seen(id):
    return unseen(id, "A sentence.", "the reason")


CLAIMS = (
    statistic("T-1", "A sentence.", Toy, far, "mean", at_most(1), where="here"),
    identity("T-2", "A sentence.", Toy, measure.worst("gap", where="layer > 0")),
    ours("T-3"),
    on_page("T-4"),
    *(statistic(f"T-5.{x}", "A sentence.", Toy, measure.mean(x), "mean", at_most(1)) for x in "ab"),
    seen("T-6"),
)
'''


def hashes(root, **changes):
    """The hashes of a room in which pieces of text are replaced."""
    room = root / "src/derived/papers/toy"
    room.mkdir(parents=True, exist_ok=True)
    for name, text in (("helpers", HELPERS), ("topic", TOPIC)):
        old, new = changes.get(name, ("", ""))
        assert old in text
        (room / f"{name}.py").write_text(text.replace(old, new))
    measured._hashes.cache_clear()
    return {id: measured.measure(root, "toy", id) for id in ("T-1", "T-2", "T-3", "T-4", "T-5.a", "T-6")}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"helpers": (".mean()", ".median()")}, "T-1"),
        ({"helpers": ("0.5", "0.6")}, "T-1"),
        ({"topic": ('worst("gap", where="layer > 0")', 'worst("gap", where="layer > 1")')}, "T-2"),
        ({"topic": ('"layer > 0"), "gap"', '"layer > 1"), "gap"')}, "T-3"),
        ({"topic": ("far, ", "lambda rows: 0, ")}, "T-1"),
        ({"topic": ("measure.mean(x)", "measure.largest(x)")}, "T-5.a"),
        ({"helpers": ("How far.", "How far it is.")}, ""),
        ({"topic": ('"here"', '"there"')}, ""),
        ({"topic": ('"T-1", "A sentence."', '"T-1", "Another."')}, ""),
    ],
)
def test_the_hash_sees_the_measure_and_what_it_calls_and_no_words(tmp_path, changes, told):
    before, after = hashes(tmp_path), hashes(tmp_path, **changes)
    assert [id for id in before if before[id] is None] == [id for id in after if after[id] is None] == ["T-4", "T-6"]
    assert {id for id in before if before[id] != after[id]} == ({told} if told else set())


@pytest.mark.parametrize("slug", SLUGS)
def test_every_measure_of_the_book_has_one(slug):
    claims = importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS
    noted = {claim.id: measured.measure(ROOT, slug, claim.id) is not None for claim in claims if claim.experiment}
    assert noted == {claim.id: claim.measure is not None for claim in claims if claim.experiment}
