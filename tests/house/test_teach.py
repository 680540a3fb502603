"""Plans and slides: the form that every chapter's files have."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "book/teach"
ALL = True  # whether every chapter must have its files
SLUGS = (
    sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
    if ALL
    else sorted(p.name for p in FOLDER.iterdir())
)


def slides_of(slug: str) -> list[str]:
    return re.split(r"\n---\n", (FOLDER / slug / "slides.md").read_text("utf-8"))


@pytest.mark.parametrize("slug", SLUGS)
def test_a_deck_has_fifteen_slides_with_notes_and_a_shorter_lecture_among_them(slug):
    slides = slides_of(slug)
    assert len(slides) == 15
    assert [n for n, slide in enumerate(slides, 1) if len(re.findall(r"^Note:$", slide, re.M)) != 1] == []
    assert [n for n, slide in enumerate(slides, 1) if len(re.findall(r"^#{1,2} ", slide, re.M)) != 1] == []
    short = [bool(re.search(r"^#.* ★$", slide, re.M)) for slide in slides]
    assert 9 <= sum(short) <= 12
    assert short[0]
    assert short[-1]


@pytest.mark.parametrize("slug", SLUGS)
def test_the_minutes_of_the_notes_join(slug):
    """Each slide begins where the one before ends, and the last one ends at 90."""
    spans = [re.search(r"Minutes? (\d+)(?: to (\d+))?", slide).groups(default="0") for slide in slides_of(slug)]
    begins, ends = zip(*[(int(a), max(int(a), int(b))) for a, b in spans], strict=True)
    assert ends[-1] == 90
    assert all(0 <= begin - end <= 1 for end, begin in zip(ends, begins[1:], strict=False)), spans


@pytest.mark.parametrize("slug", SLUGS)
def test_a_plan_has_its_seven_parts_on_one_page(slug):
    text = (FOLDER / slug / "plan.md").read_text("utf-8")
    heads = re.findall(r"^## (.*)$", text, re.M)
    wanted = (
        "Afterwards",
        "What the class reads",
        "The board",
        "Two proofs",
        "Two sketches",
        "Three questions",
        "What to drop",
    )
    assert len(heads) == len(wanted)
    assert all(head.startswith(begin) for head, begin in zip(heads, wanted, strict=True)), heads
    assert text.startswith("# Plan: ")
    assert len(text.splitlines()) <= 65
    assert {"ref"} <= set(re.findall(r"\{(\w+)\}`\w+-ex-", text)), "an objective names the exercise that tests it"
