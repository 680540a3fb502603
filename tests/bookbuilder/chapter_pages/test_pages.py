"""Fragments of the site that are made from data."""

import json
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from toybook import COMMITTED

from bookbuilder.chapter_pages import explorer, pages
from bookbuilder.notebook.reading import Minutes


def row(claim: str, verdict: str = "holds", **changes) -> dict:
    """A row of the ledger."""
    base = COMMITTED | dict.fromkeys(("device", "value", "n", "expected"))
    base |= {"id": claim, "kind": "statistic", "statement": "$a<b$", "source": "paper", "verdict": verdict, "unit": ""}
    return base | changes


def finding(*rows: dict, slug: str = "toy", records: tuple = ()) -> dict:
    """What one chapter found."""
    run = {"tier": "ci", "seed": 0, "device": "cpu", "device_name": "a CPU", "seconds": 3.0, "peak_memory_mb": 9.0}
    run |= {"chapter": slug, "key": "0", "date": "2026-11-20T09:30:00+00:00", "versions": {"python": "3.11"}}
    return run | {"rows": list(rows), "records": list(records)}


def chapter(
    *rows: dict,
    slug: str = "toy",
    records: tuple = (),
    launch: str = "",
    sections: tuple = (),
    short: int | None = None,
    slides: str = "",
) -> pages.Chapter:
    """A chapter of the book."""
    facts = {
        "paper": {"title": f"A {slug}", "authors": "A", "arxiv": "1", "bibkey": "a1"},
        **{"read": "All of it.", "surprise": "So.", "says": "$x$ <is> y.", "found": "Yes.", "means": "If a, do b."},
    }
    facts |= {"prerequisites": ["p"], "objectives": ["o"]}
    links = {
        "notebook": "n",
        "student": "s",
        "homework": "h",
        "wheel": "w",
        "launch": launch,
        "slides": slides,
        "report": "",
    }
    found = finding(*rows, slug=slug, records=records)
    return pages.Chapter(slug, facts, found, 2, links, Minutes(short, 45), sections, f"1. The {slug}")


def test_a_retelling_that_fails_is_not_an_error_of_the_paper():
    rows = [row("A", "fails"), row("B", "fails", source="digest"), row("C", source="digest"), row("D", "not run")]
    assert [pages.verdict_key(r) for r in rows] == ["fails", "retold", "holds", "not-run"]
    assert {key: n for key, n in pages.counts(rows).items() if n} == {"holds": 1, "fails": 1, "retold": 1, "not-run": 1}


def test_an_amendment_stands_beneath_what_it_amends():
    rows = [row("A.b", amends="A"), row("B"), row("A", "fails"), row("A.c", amends="A.b"), row("Z", amends="elsewhere")]
    assert [r["id"] for r in pages.headlines(rows)] == ["B", "A", "A.b", "A.c", "Z"]


def test_the_ledger_shows_every_headline_once():
    rows = [row("A", tier="cpu", value=2.0, n=9), row("A", "not run", tier="gpu", reason="soon", headline=False)]
    text = pages.ledger([chapter(*rows, row("B", plain="In words."))])
    assert text.count('class="claim"') == 2
    assert 'href="../claims/toy.html#A"' in text


def test_the_opening_counts_the_claims_of_paper_and_code():
    rows = [row("A"), row("C", "fails", source="repo"), row("O", source="ours"), row("P", source="ours")]
    soup = BeautifulSoup(pages.card(chapter(*rows)), "html.parser")
    chips = [pill.parent.parent.get_text().strip() for pill in soup.select(".verdict")]
    assert chips == ["the paper: ✓ 1 holds", "its code: ✗ 1 fails"]


def test_the_opening_says_what_was_read_the_surprise_and_three_lines():
    text = pages.card(chapter(row("A")))
    above, below = text.split(pages.PICTURE)
    assert "All of it." in above
    assert "So." in above
    soup = BeautifulSoup(below, "html.parser")
    assert [line.get_text() for line in soup.select(".opening-lines dt")] == [
        *("The paper says", "We found", "What it means for you"),
    ]


def test_a_tempting_reading_of_ours_is_no_failure():
    assert pages.grouped([row("A", "refuted", source="ours", kind="counterexample")]) == {"ours": {"refuted": 1}}


def test_a_chapter_shows_the_papers_claims_and_counts_the_others():
    rows = [
        row("A", plain="A is so."),
        row("B", source="ours"),
        row("C", "fails"),
        row("C.b", source="ours", amends="C"),
    ]
    text = pages.chapter_ledger(finding(*rows))
    soup = BeautifulSoup(text, "html.parser")
    assert [line["data-claim"] for line in soup.select("tr.claim")] == ["A", "C"]
    assert [head.get_text() for head in soup.select("thead th")] == ["Verdict", "Claim", "We found"]
    assert soup.select_one(".fits").get_text() == "A is so."
    assert soup.select_one(".stated a")["href"] == "../claims/toy.html#C.b"
    assert soup.select_one(".claims-more a").get_text() == "2 more statements"


@pytest.mark.parametrize(("unit", "shown"), [("", "0.5"), ("nats", "0.5 nats"), ("of its bound", "0.5 of its bound")])
def test_a_value_stands_with_its_own_unit(unit, shown):
    soup = BeautifulSoup(pages.chapter_ledger(finding(row("A", kind="bound", value=0.5, unit=unit))), "html.parser")
    found = soup.select_one("td[data-label='We found']").get_text(" ").replace("\xa0", " ")
    assert " ".join(found.split()).startswith(shown)


def terms(**changes) -> dict[str, str]:
    """What the page of evidence says of a claim, by its terms."""
    one = row("A", **{"value": 0.5} | changes)
    found = SimpleNamespace(
        **{"row": one, "entry": pages.Entry(one, [], []), "records": {}, "rests": [], "alone": "a reason"},
        **{"decided": None, "seen": None, "source": None, "tests": [], "rerun": ""},
    )
    soup = BeautifulSoup(pages.evidence(chapter(one), [found], set(), {}, "", ""), "html.parser")
    pairs = ((each.get_text(), each.find_next_sibling("dd").get_text(" ")) for each in soup.select("dt"))
    return {term: " ".join(words.split()) for term, words in pairs}


def measured(**changes) -> str:
    """What the page of evidence says that a claim found."""
    return terms(**changes)["found"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"accept": [1.97, 2.03], "criterion": "x: within $2$ ± $0.03$"}, "off by 0.015; 0.03 allowed"),
        ({"accept": [1, 3], "criterion": "x: within $[1, 3]$"}, "1 to 3 allowed"),
        ({"accept": [0.5, None]}, "at least 0.5 needed"),
        ({"accept": [2.0, 2.0]}, "exactly 2 needed"),
        ({"kind": "counterexample"}, "the statement allows 1"),
        ({"kind": "measured"}, ""),
    ],
)
def test_what_was_found_stands_beside_what_was_allowed(changes, words):
    said = measured(value=2.015, **changes)
    assert "2.015" in said
    assert (words in said) if words else ("allowed" not in said)


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ({"kind": "too few", "n": 360}, "too few: about 360 would decide"),
        (
            {"kind": "too few", "n": 34, "excludes": 0.02},
            "too few: about 34 would exclude an effect of more than 0.02 beyond the criterion",
        ),
        ({"kind": "absent", "excluded": 0.02}, "absent: an effect of more than 0.02 beyond the criterion is excluded"),
        ({"kind": "at the edge"}, "at the edge: not even a hundred times as many would decide"),
    ],
)
def test_an_undecided_claim_says_which_of_the_three_it_is(why, words):
    assert words in measured(value=0.5, verdict="undecided", undecided=why)


def test_a_claim_shows_its_control_its_scale_and_how_far_it_was_tried():
    arm = {"value": 3.0, "low": 2.5, "high": 3.5, "n": 9, "verdict": "fails", "reason": ""}
    found = terms(control=arm, scale="ours", made_of="real data", horizon="$10^6$ steps", sees=0.25)
    assert found["control"] == "scores 3 [2.5, 3.5]: fails as it must"
    assert (found["scale"], found["horizon"]) == ("at ours; real data", r"tried up to \(10^6\) steps")
    other = arm | {"name": "exact sampling"}
    assert terms(comparison=other)["comparison"] == "exact sampling: 3 [2.5, 3.5]"
    assert found["the design sees"] == "a difference of 0.25, four times in five"
    assert terms(control="the bound is attained")["control"] == "none: the bound is attained"
    assert {"control", "effect", "horizon", "the design sees"}.isdisjoint(terms())


def test_a_number_of_the_paper_stands_beside_ours():
    effect = {"unit": "share", "paper": 0.81, "paper_error": 0.02, "ours": 0.79, "low": 0.77, "high": 0.8, "sees": 0.1}
    effect |= {"difference": -0.02, "difference_low": -0.09, "difference_high": 0.05, "ratio": 0.975}
    assert terms(effect=effect, sees=0.03)["effect"] == (
        "theirs 0.81 ± 0.02, ours 0.79 [0.77, 0.8] (share); difference −0.02 [−0.09, 0.05], ratio 0.975; "
        "the design sees 0.1"
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "identity", "n": 1, "verdict": "fails"}, "beyond its bound, one instance"),
        ({"kind": "bound", "n": 3, "proof": "p"}, "proved on the page; no counterexample in 3 instances"),
        ({"kind": "counterexample", "n": 3, "verdict": "fails"}, "one exact witness"),
        ({"kind": "bound", "n": 0, "verdict": "undecided", "proof": "p", "reason": "no number"}, "no number"),
        ({"n": 3, "low": 0.0}, "an interval of 99.9\u00a0% over 3 instances"),
        ({"n": 3}, "computed, without chance, in 3 instances"),
        ({"verdict": "not run", "reason": "no data"}, "no data"),
    ],
)
def test_how_sure_a_verdict_is(changes, words):
    assert pages.sure(row("A", **changes)) == words


def test_the_errata_are_typeset():
    entry = {"said": "$x<1$", "where": "§2", "right": "$x\\le 1$", "who": "we", "checked": "CAC-5.b"}
    text = pages.errata([entry])
    assert "\\(x&lt;1\\)" in text


def test_status_names_records_and_their_state():
    record = {"experiment": "LongReach", "tier": "gpu", "date": None, "device": None, "seconds": None}
    missing = record | {"peak_memory_mb": None, "state": "missing", "reasons": ["derived record toy Reach --tier gpu"]}
    text = pages.status([chapter(row("A"), records=(missing | {"no_commit": None},))])
    assert "derived record toy Reach --tier gpu" in text
    assert "state-missing" in text
    assert "Long<wbr>Reach" in text
    assert ">not run</span>" in text


def made(tier: str, seconds: float, **changes) -> dict:
    record = {"experiment": "Reach", "tier": tier, "date": "2026-11-24T09:00:00+00:00", "device": "a CPU"}
    record |= {"seconds": seconds, "peak_memory_mb": 1500.0, "state": "unchanged", "reasons": [], "no_commit": ""}
    return record | changes


def test_status_has_seconds_and_memory_and_marks_the_records_whose_commit_cannot_be_fetched():
    both = (made("cpu", 109.0), made("gpu", 2055.0, no_commit="on a branch that was squashed"))
    text = pages.status([chapter(row("A"), records=both)])
    soup = BeautifulSoup(text, "html.parser")
    assert soup.find(id="record-toy-Reach-cpu").get_text().endswith("2 min1.5 GB")
    (marked,) = soup.select(".no-commit")
    assert marked.find_parent("tr")["id"] == "record-toy-Reach-gpu"
    assert marked.get_text() == "its commit cannot be fetched: on a branch that was squashed"


def test_the_card_names_the_longest_run_that_was_made():
    text = pages.card(chapter(row("A"), records=(made("cpu", 109.0), made("gpu", 2055.0), made("cpu", 3.0))))
    assert "the longest run: Reach at <code>gpu</code>, 34 min and 1.5 GB" in text
    assert "the longest run" not in pages.card(chapter(row("A")))


def test_an_explorer_says_what_it_shows_and_names_its_files():
    figure = {"data": [{"name": "</script><b>"}], "layout": {"meta": {"alt": 'say "x" < y'}, "height": 300}}
    text = str(explorer.placeholder(figure, "../p.js", "explorer-1", "../explorers/toy"))
    assert 'aria-label="say &#34;x&#34; &lt; y"' in text
    assert 'data-figure="../explorers/toy.js"' in text
    assert "--explorer-height: 300px" in text
    name, spec = explorer.script(figure, "toy.js").strip().rstrip(";").split(" = ", 1)
    assert name.endswith('["toy.js"]')
    assert json.loads(spec)["data"] == figure["data"]


def test_the_opening_leads_to_the_summary_and_says_how_long_it_is():
    text = pages.card(chapter(row("A"), short=11))
    assert '45 min to read, 11 min for <a href="#in-short">the summary</a>' in text


def test_records_of_one_machine_tier_and_state_stand_together():
    def record(name, state, date="2026-01-01T00:00:00+00:00"):
        facts = {"experiment": name, "tier": "cpu", "device": "a core", "state": state, "date": date}
        return facts | {"seconds": 1.0, "peak_memory_mb": 2.0}

    early, late = record("B", "stale")["date"], "2026-02-01T00:00:00+00:00"
    records = [record("A", "unchanged"), record("B", "stale"), record("C", "unchanged", late), record("D", "missing")]
    assert pages.hardware(records) == [
        {"tier": "cpu", "device": "a core", "state": "unchanged", "names": ["A", "C"], "first": early, "last": late},
        {"tier": "cpu", "device": "a core", "state": "stale", "names": ["B"], "first": early, "last": early},
    ]
    text = pages.card(chapter(row("A"), records=tuple(records)))
    assert "A, C" in text
    assert text.count("2026-01-01 to <time") == 1
