"""The book's ledger on the command line: print, accept, compare."""

import json
from types import SimpleNamespace

import pytest
import toybook

from bookbuilder.ledger import changes, ledger

# As promised to those who read the ledger by program; not imported, so that a change is noticed.
KEYS = [
    *("id", "paper", "kind", "statement", "plain", "source", "where", "paper_value", "tier", "device", "seed", "value"),
    *("low", "high", "unit", "n", "criterion", "accept", "configuration", "terms", "verdict", "reason", "amends"),
    *("experiment", "proof", "headline", "control", "comparison", "undecided", "horizon", "scale", "made_of", "effect"),
    *("sees", "changed", "expected"),
]


def test_json_holds_every_row_with_the_promised_keys(built):
    toybook.derived(built, "claims", "--accept")
    process = toybook.derived(built, "claims", "--json")
    assert process.returncode == 0
    assert [list(row) for row in json.loads(process.stdout)] == [KEYS]


def test_a_committed_ledger_is_wanted_and_accept_writes_it(built):
    process = toybook.derived(built, "claims")
    assert process.returncode == 1
    assert "toy T-1 (ci): not in the committed ledger" in process.stderr
    assert toybook.derived(built, "claims", "--accept").returncode == 0
    assert toybook.derived(built, "claims").returncode == 0


def test_a_verdict_other_than_the_committed_one_fails(built):
    toybook.derived(built, "claims", "--accept")
    path = built / "results/ledger.json"
    path.write_text(path.read_text().replace('"holds"', '"undecided"'))
    process = toybook.derived(built, "claims")
    assert process.returncode == 1
    assert "toy T-1 (ci): ours «undecided» 0.5, yours «holds» 0.5" in process.stderr


RECORDED = toybook.COMMITTED | {"tier": "cpu"}
CHANGE = {"date": "2026-11-22", "kind": "range", "what": "The margin was 1.", "why": "The bound allows less."}
KEPT = changes.hashes([CHANGE])


@pytest.mark.parametrize("part", ["criterion", "accept", "unit"])
def test_what_judges_a_record_and_changes_needs_a_word(part):
    new = RECORDED | {part: "another", "terms": "f"}
    (line,) = ledger.unexplained([RECORDED], [new])
    assert line.startswith(f"toy T-1 (cpu): {part} changed after numbers existed")
    assert ledger.unexplained([RECORDED], [new | {"changed": [CHANGE]}]) == []
    assert ledger.unexplained([toybook.COMMITTED], [new | {"tier": "ci"}]) == [], "no record was judged by it"


@pytest.mark.parametrize("part", ["statement", "configuration"])
def test_words_and_sizes_may_change(part):
    assert ledger.unexplained([RECORDED], [RECORDED | {part: "another", "terms": "f"}]) == []


def test_an_old_word_does_not_explain_a_new_change():
    once = RECORDED | {"changed": KEPT}
    twice = once | {"changed": [CHANGE], "criterion": "another", "terms": "f"}
    assert len(ledger.unexplained([once], [twice])) == 1
    assert ledger.unexplained([once], [twice | {"changed": [CHANGE, CHANGE]}]) == []


@pytest.mark.parametrize("left", [[], [CHANGE | {"why": "No reason."}]])
def test_what_was_said_of_a_change_stays(left):
    (line,) = ledger.unexplained([RECORDED | {"changed": KEPT}], [RECORDED | {"changed": left}])
    assert "only add to them" in line


def test_terms_other_than_those_that_were_registered_are_told():
    registered, new = toybook.COMMITTED | {"verdict": None}, toybook.COMMITTED | {"criterion": "another", "terms": "f"}
    (line,) = ledger.unexplained([registered], [new])
    assert line.startswith("toy T-1 (ci): criterion changed since it was registered")


@pytest.mark.parametrize("old", [{"verdict": "not run"}, {"terms": None}])
def test_without_numbers_terms_are_free(old):
    before = RECORDED | old
    assert ledger.unexplained([before], [before | {"criterion": "another", "terms": "f"}]) == []


def test_accept_refuses_terms_that_changed_without_a_word(repo):
    toybook.write_chapter(repo, "toy", toybook.report_cell(tier="cpu"))
    assert toybook.derived(repo, "run").returncode == 0
    assert toybook.derived(repo, "claims", "--accept").returncode == 0
    kept = (repo / "results/ledger.json").read_text()
    assert json.loads(kept)[0]["configuration"] == {"draws": 10}
    toybook.write_chapter(repo, "toy", toybook.report_cell(tier="cpu", criterion="at most 2", terms="f"))
    assert toybook.derived(repo, "run").returncode == 0
    for options in ([], ["--accept"]):
        process = toybook.derived(repo, "claims", *options)
        assert process.returncode == 1
        assert "toy T-1 (cpu): criterion changed after numbers existed" in process.stderr
    assert (repo / "results/ledger.json").read_text() == kept


def departures(monkeypatch, old, new, seed=0, tier="ci"):
    repo = SimpleNamespace(chapters=lambda: ["toy", "other"])
    findings = {"toy": {"seed": seed, "tier": tier}, "other": None}
    monkeypatch.setattr(ledger, "read_findings", lambda repo, slug: findings[slug])
    return ledger.departures(repo, [RECORDED | old], [] if new is None else [RECORDED | new])


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (None, "in the committed ledger, and no longer a row"),
        ({"verdict": "not run", "reason": "record it"}, "ours «holds» from a record, which is gone (record it)"),
        ({"value": 0.5 + 1e-9}, "its record gives other numbers: ours 0.5, n = 3, yours 0.5, n = 3"),
        ({"n": 4}, "its record gives other numbers: ours 0.5, n = 3, yours 0.5, n = 4"),
        ({"low": 0.4}, "its record gives other numbers"),
        ({"terms": "f", "changed": [CHANGE]}, "its terms are not the committed ones"),
    ],
)
def test_what_departs_from_the_committed_ledger_is_told(monkeypatch, new, said):
    (line,) = departures(monkeypatch, {}, new)
    assert line.startswith(f"toy T-1 (cpu): {said}")
    assert departures(monkeypatch, {}, new, seed=1) == departures(monkeypatch, {}, new, tier="cpu") == []
    assert departures(monkeypatch, {"paper": "other"}, None) == [], "a chapter that was not run here"
    assert departures(monkeypatch, {"paper": "left"}, None), "a chapter that is none any more"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"value": 0.5 + 1e-10}),
        ({"value": 1e-18, "low": -1, "high": 1}, {"value": -1e-18, "low": -1, "high": 1}),
        ({"tier": "ci"}, {"tier": "ci", "value": 0.7}),
        ({"verdict": "not run"}, {"value": 0.7}),
        ({"terms": None}, {"terms": "f"}),
        ({}, {"criterion": "another", "terms": "f"}),  # unexplained, and told as that
    ],
)
def test_what_is_no_departure(monkeypatch, old, new):
    assert departures(monkeypatch, old, new) == []


def test_a_readers_ledger_is_compared_row_by_row(built):
    toybook.derived(built, "claims", "--accept")
    mine = [toybook.ROW | {"verdict": "fails", "value": 1.25}, toybook.ROW | {"id": "T-2"}]
    (built / "mine.json").write_text(json.dumps(mine))
    process = toybook.derived(built, "compare", "mine.json")
    assert process.returncode == 1
    assert process.stdout.splitlines() == [
        "toy, tier ci, seed 0: 2 of 2 rows run again, the others from records",
        "- toy T-1 (ci): ours «holds» 0.5, yours «fails» 1.25, difference +0.75",
        "- toy T-2 (ci): not in the committed ledger",
        "2 of 2 verdicts differ from results/ledger.json",
        "largest moves, ours → yours:",
        "  toy T-1 (ci): 0.5 → 1.25",
    ]


def test_the_largest_moves_are_named_where_no_verdict_turns():
    """Relative to the wider interval: 0.1 of 1 is less than 0.01 of 0.02."""
    ours = [toybook.ROW | {"value": 0.5, "low": 0.0, "high": 1.0}]
    ours += [toybook.ROW | {"id": "T-2", "value": 0.5, "low": 0.49, "high": 0.51}]
    yours = [ours[0] | {"value": 0.6}, ours[1] | {"value": 0.51}]
    assert ledger.moves(ours, yours) == [
        "toy T-2 (ci): 0.5 → 0.51 [0.49, 0.51]",
        "toy T-1 (ci): 0.5 → 0.6 [0, 1]",
    ]
    assert ledger.moves(ours, ours) == []


def test_after_a_run_that_did_not_end_nothing_is_compared(built):
    """The findings that are there belong to an earlier run."""
    note = {"slugs": ["toy"], "tier": "ci", "seed": 1, "ended": False}
    (built / "_build/last_run.json").write_text(json.dumps(note))
    for command in ("claims", "compare"):
        assert toybook.derived(built, command).stderr.splitlines() == [
            "derived: the last run did not end, so what is here is older; run it again: "
            "derived run toy --tier ci --seed 1"
        ]


WORDS = '[{"id": "T-1", "paper": "toy", "tier": "ci", "verdict": "fails", "value": "large"}]'


@pytest.mark.parametrize("content", [None, "{", "{}", "[]", '[{"id": 1}]', WORDS])
def test_a_file_that_is_no_ledger_is_refused(built, content):
    toybook.derived(built, "claims", "--accept")
    if content is not None:
        (built / "mine.json").write_text(content)
    process = toybook.derived(built, "compare", "mine.json")
    assert process.returncode == 1
    assert len(process.stderr.splitlines()) == 1
    assert "mine.json" in process.stderr


def test_a_verdict_is_judged_where_the_book_itself_ran():
    row = toybook.ROW | {"verdict": "fails", "expected": "holds"}
    assert len(ledger.unexpected([row])) == 1
    assert ledger.unexpected([row | {"verdict": "holds"}, row | {"seed": 1}, row | {"verdict": "not run"}]) == []


def test_a_control_that_passes_or_has_no_number_is_named():
    arm = {"value": 0.25, "low": None, "high": None, "n": 3, "verdict": "fails", "reason": ""}
    row = toybook.ROW | {"expected": "holds"}
    assert ledger.unexpected([row | {"control": arm}, row | {"control": "there is none"}]) == []
    (line,) = ledger.unexpected([row | {"control": arm | {"verdict": "holds"}}])
    assert line.startswith("toy: claim T-1 at tier ci: its control passes by the same criterion (0.25)")
    (line,) = ledger.unexpected([row | {"control": arm | {"value": None, "reason": "no such column"}}])
    assert line.endswith("its control has no number: no such column")
    (line,) = ledger.unexpected([row | {"control": arm | {"verdict": "undecided"}}])
    assert "its control is undecided" in line
    small = {"control": arm | {"verdict": "undecided"}, "headline": False}
    assert ledger.unexpected([row | small]) == [], "a small size need not separate them"
    assert ledger.unexpected([row | {"seed": 1, "control": arm | {"verdict": "holds"}}]) == []


def test_a_claim_that_is_not_registered_fails_and_the_command_is_named(repo):
    toybook.write_chapter(repo, "toy", toybook.report_cell(id="T-2"))
    assert toybook.derived(repo, "run").stderr.splitlines() == [
        "derived: toy: claim T-2 at tier ci is not registered; say which verdict you expect: "
        "derived register toy VERDICT T-2 --tier ci"
    ]


@pytest.fixture
def clone(built):
    """A fresh clone of two chapters in which only the first was run."""
    toybook.write_chapter(built, "other", toybook.report_cell(paper="other"))
    toybook.write_toc(built, "toy", "other")
    toybook.write_ledger(built, toybook.COMMITTED, toybook.COMMITTED | {"paper": "other"})
    return built


def test_one_chapter_of_a_fresh_clone_can_be_compared(clone):
    process = toybook.derived(clone, "claims", "--json")
    assert process.returncode == 0, process.stderr
    assert [row["paper"] for row in json.loads(process.stdout)] == ["toy"]
    assert process.stderr == "note: other: not run here and left out\n"
    (clone / "mine.json").write_text(process.stdout)
    assert "0 of 1 verdicts differ from results/ledger.json\n" in toybook.derived(clone, "compare", "mine.json").stdout


def test_chapters_that_did_not_run_keep_their_rows(clone):
    before = json.loads((clone / "results/ledger.json").read_text())
    assert {row["paper"] for row in before} == {"toy", "other"}
    process = toybook.derived(clone, "claims", "--accept")
    assert process.returncode == 0, process.stderr
    after = json.loads((clone / "results/ledger.json").read_text())
    assert [row for row in after if row["paper"] == "other"] == [row for row in before if row["paper"] == "other"]
    assert [row["paper"] for row in after] == ["toy", "other"]


def test_a_live_row_whose_data_are_not_here_keeps_its_verdict(clone):
    before = json.loads((clone / "results/ledger.json").read_text())
    toybook.write_chapter(clone, "toy", toybook.report_cell(verdict="not run", reason="not here: make real (mails)"))
    assert toybook.derived(clone, "run", "toy").returncode == 0
    process = toybook.derived(clone, "claims", "--accept")
    assert process.returncode == 0, process.stderr
    after = json.loads((clone / "results/ledger.json").read_text())
    assert [row["verdict"] for row in after] == [row["verdict"] for row in before]
    assert toybook.derived(clone, "claims").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "changes", "message"),
    [
        (("--seed", "1"), {}, "not accepted: toy last ran with seed 1 and tier ci"),
        (("--tier", "cpu"), {}, "not accepted: toy last ran with seed 0 and tier cpu"),
        ((), {"verdict": "fails"}, "the verdict is «fails», expected «holds»"),
    ],
)
def test_what_is_not_the_books_own_run_is_not_accepted(repo, arguments, changes, message):
    toybook.write_chapter(repo, "toy", toybook.report_cell(**changes))
    before = (repo / "results/ledger.json").read_text()
    toybook.derived(repo, "run", *arguments)
    process = toybook.derived(repo, "claims", "--accept")
    assert process.returncode == 1
    assert message in process.stderr.splitlines()[-1]
    assert (repo / "results/ledger.json").read_text() == before


def test_a_chapter_at_another_seed_is_not_published_in_passing(clone):
    assert toybook.derived(clone, "run", "toy", "--seed", "3").returncode == 0
    process = toybook.derived(clone, "site", "other")
    assert process.returncode == 1
    assert process.stderr.splitlines() == [
        "derived: toy last ran with seed 3 and would be published so; name it as well: derived site other toy"
    ]


TOPIC = """
CLAIMS = (
    identity("T-1", "So.", Toy, measure.worst()),
    statistic("T-2", "So.", Toy, measure.mean("value")),
    unseen("T-3", "So.", "no data"),
)
"""


def test_what_is_not_registered_is_named_before_anything_runs(repo):
    room = repo / "src/derived/papers/toy"
    room.mkdir(parents=True)
    (room / "topic.py").write_text(TOPIC)
    toybook.write_chapter(repo, "toy", toybook.report_cell())
    toybook.write_ledger(repo, toybook.COMMITTED | {"verdict": None})
    process = toybook.derived(repo, "run")
    assert process.stderr.splitlines() == [
        "derived: toy: claim T-2 is not registered; say which verdict you expect: derived register toy VERDICT T-2"
    ]
    assert "to run" not in process.stdout
    assert toybook.derived(repo, "run", "--seed", "1").returncode == 0, "no verdict is expected of another seed"
