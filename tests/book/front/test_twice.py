"""The ledger says which claims are decided twice, and how often the two hands agreed at first sight."""

import pytest
from bs4 import BeautifulSoup
from press import ROW

from derived.book.front import twice
from derived.book.house import UserError
from derived.book.page.pages import Chapter
from derived.book.source.reading import Minutes

ENTRY = "- {{date: 2026-11-24, fault: {}, claims: [T-2], what: It differed.}}\n"


def said(root, fault: str, rows=()) -> str:
    (root / "tests/pencil").mkdir(parents=True, exist_ok=True)
    (root / "pencil").mkdir(exist_ok=True)
    (root / "tests/pencil/test_toy.py").write_text('def test_it():\n    """`T-1` and `T-2`, and `T-9` of another."""\n')
    (root / twice.FILE).write_text(ENTRY.format(fault))
    rows = [*(ROW | {"id": name} for name in ("T-1", "T-2", "T-3")), *rows]
    chapter = Chapter("toy", {}, {"rows": rows}, 0, {}, Minutes(1, 2), (), "1. Toy")
    return BeautifulSoup(twice.table(root, [chapter]), "html.parser").get_text(" ")


@pytest.mark.parametrize(("fault", "agreed"), [("the test", 2), ("the pencil", 1), ("the package", 1)])
def test_a_fault_of_either_hand_lowers_the_rate(tmp_path, fault, agreed):
    text = said(tmp_path, fault)
    assert f"2 claims are decided twice, by the package and by the pencil; at first sight {agreed} of 2 agreed" in text
    assert f"2026-11-24, {fault} was wrong (T-2): It differed." in text
    assert "T-9" not in text


def test_what_keeps_the_pencil_from_claims_in_plain_words(tmp_path):
    """A claim of the pencil's list, one that nobody could run, one about real weights; T-3 has no plain words."""
    (tmp_path / "pencil").mkdir()
    (tmp_path / twice.ONCE).write_text("- why: trained models\n  claims: [T-4, T-5]\n")
    plain = ROW | {"plain": "It is so.", "made_of": "synthetic", "kind": "statistic", "experiment": "E"}
    others = {
        "T-1": {},
        "T-4": {},
        "T-5": {},
        "T-6": {"made_of": "real weights"},
        "T-7": {"kind": "measured", "experiment": None},
    }
    text = said(tmp_path, "the test", [plain | {"id": name} | fields for name, fields in others.items()])
    text = " ".join(text.split())
    assert "trained models (2): T-4 , T-5" in text
    assert "real weights (1): T-6" in text
    assert "nobody could run them (1): T-7" in text
    assert text.count("T-1") == 2  # among those that are decided twice: once as it stands, once in plain words
    assert "T-3" not in text


def test_another_fault_is_refused(tmp_path):
    with pytest.raises(UserError, match="fault"):
        said(tmp_path, "nobody")


def test_without_a_pencil_nothing_is_said(tmp_path):
    assert twice.table(tmp_path, []) == ""
