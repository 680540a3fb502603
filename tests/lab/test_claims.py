"""Verdicts follow from the kind, the estimate and the criterion, and from nothing else."""

import dataclasses

import numpy as np
import pytest

from derived.lab import claims
from derived.lab.claims import Claim
from derived.lab.effect import Published
from derived.lab.findings import COLUMNS
from derived.lab.record import save
from derived.lab.stats import Estimate, mean
from derived.lab.study import FROM_A_SUMMARY, Study, ledger, record_states, staleness, study, terms


def claim(toy=None, **changes) -> Claim:
    facts = {
        "id": "T-1",
        "statement": "$1=1$",
        "source": "paper",
        "where": "here",
        "paper_value": "1",
        "kind": "statistic",
        "criterion": "in $[-1, 2]$",
        "experiment": toy,
        "measure": lambda rows: mean(rows.loc[rows["shift"] == 0, "value"]),
        "accept": (-1.0, 2.0),
    }
    return Claim(**facts | changes)


@pytest.mark.parametrize(
    ("kind", "estimate", "proof", "verdict"),
    [
        ("identity", Estimate(0.9, 3), "", "holds"),
        ("identity", Estimate(1.1, 3), "", "fails"),
        ("identity", Estimate(np.nan, 3), "", "undecided"),
        ("identity", Estimate(np.inf, 3), "", "fails"),
        ("bound", Estimate(np.nan, 3), "prf-x", "undecided"),
        ("counterexample", Estimate(np.nan, 3), "", "undecided"),
        ("counterexample", Estimate(5.0, 0), "", "undecided"),
        ("bound", Estimate(0.9, 3), "", "undecided"),
        ("bound", Estimate(0.9, 3), "prf-x", "holds"),
        ("bound", Estimate(1.1, 3), "prf-x", "fails"),
        ("counterexample", Estimate(1.1, 3), "", "fails"),
        ("counterexample", Estimate(0.0, 3), "", "undecided"),
        ("counterexample", Estimate(1.5, 3, 1.1, 1.9), "", "fails"),
        ("counterexample", Estimate(1.5, 3, 1.0, 2.0), "", "undecided"),
        ("statistic", Estimate(0.5, 3, 0.1, 0.9), "", "holds"),
        ("statistic", Estimate(0.5, 3, -0.1, 0.9), "", "undecided"),
        ("statistic", Estimate(2.0, 3, 1.5, 2.5), "", "fails"),
        ("statistic", Estimate(-2.0, 3, -2.5, -1.5), "", "fails"),
        ("statistic", Estimate(0.5, 3, 0.0, 1.0), "", "holds"),  # the ends of the range are in it
        ("statistic", Estimate(-0.5, 3, -1.0, 0.0), "", "undecided"),
        ("statistic", Estimate(1.5, 3, 1.0, 2.0), "", "undecided"),
        ("statistic", Estimate(np.nan, 3, np.nan, np.nan), "", "undecided"),
        ("measured", Estimate(7.0, 3), "", "reported"),
        ("measured", Estimate(np.nan, 3), "", "undecided"),
    ],
)
def test_the_verdict(kind, estimate, proof, verdict):
    accept = (0.0, 1.0) if kind == "statistic" else (float("-inf"), 1.0)
    assert claim(kind=kind, proof=proof, accept=accept).judge(estimate)[0] == verdict


RANGES = [
    (claims.within(2, 0.25), "within $2$ ± $0.25$", (1.75, 2.25)),
    (claims.within(2 / 3, 0.012, r"\frac23"), r"within $\frac23$ ± $0.012$", (2 / 3 - 0.012, 2 / 3 + 0.012)),
    (claims.between(-0.1, 0.3), "within $[-0.1, 0.3]$", (-0.1, 0.3)),
    (claims.at_most(1e-9), "at most $10^{-9}$", (-np.inf, 1e-9)),
    (claims.at_most(1 + 1e-6), "at most $1.000001$", (-np.inf, 1 + 1e-6)),
    (claims.at_least(2e-5), r"at least $2\cdot10^{-5}$", (2e-5, np.inf)),
]


@pytest.mark.parametrize(("accept", "words", "ends"), RANGES, ids=[words for _, words, _ in RANGES])
def test_words_and_ends_of_a_range_are_one(accept, words, ends):
    assert (accept.words, (accept.low, accept.high)) == (words, ends)


@pytest.mark.parametrize(("source", "verdict"), [("ours", "refuted"), ("paper", "fails"), ("digest", "fails")])
def test_only_a_reading_of_our_own_is_refuted_and_nobodys_failure(toy, source, verdict):
    made = claims.refuted(
        *("T-1", "$1=2$.", toy, lambda rows: Estimate(5.0, 1), "a gap", claims.at_most(1)),
        source=source,
    )
    assert made.judge(Estimate(5.0, 1))[0] == verdict


def test_a_tier_that_there_is_not_is_refused_before_anything_runs(toy):
    with pytest.raises(ValueError, match="T-1: judged at xl"):
        claim(toy, judged_at=("ci", "xl"))


def test_terms_are_all_that_a_verdict_rests_on_and_nothing_else(toy):
    first = terms(claim(toy), "ci")
    assert {name: first[name] for name in ("accept", "configuration")} == {
        "accept": [-1.0, 2.0],
        "configuration": {"draws": 10, "shifts": [0.0, 1.0]},
    }
    for same in (claim(toy, where="§2"), claim(toy, plain="One is one.")):
        assert terms(same, "ci") == first
    for other in (
        claim(toy, statement="$1=2$"),
        claim(toy, criterion="in $[0, 2]$"),
        claim(toy, accept=(-np.inf, 2.0)),
        claim(None, reason="no data"),
    ):
        assert terms(other, "ci")["terms"] != first["terms"]
    assert terms(claim(toy), "cpu")["terms"] != first["terms"]


def test_the_largest_tier_that_ran_is_the_headline(toy, recorded):
    def headlines() -> dict:
        rows = ledger("toy", [claim(toy)], [study(toy, "ci", 0, "cpu")])
        assert all(tuple(row) == COLUMNS for row in rows)
        return {row["tier"]: (row["verdict"], row["headline"]) for row in rows}

    assert headlines() == {"ci": ("holds", True), "cpu": ("not run", False), "gpu": ("not run", False)}
    save(recorded(toy))
    assert headlines() == {"ci": ("holds", False), "cpu": ("holds", True), "gpu": ("not run", False)}


def test_a_tier_that_was_not_run_says_how_to_run_it(toy):
    row = ledger("toy", [claim(toy)], [study(toy, "ci", 0, "cpu")])[1]
    assert (row["verdict"], row["seed"]) == ("not run", None)
    assert "derived record toy Toy --tier cpu" in row["reason"]


def test_a_rerunners_own_run_of_a_recorded_tier_stands_beside_ours(toy, recorded):
    save(recorded(toy))
    rows = {row["tier"]: row for row in ledger("toy", [claim(toy)], [study(toy, "cpu", 3, "cpu")])}
    assert (rows["cpu"]["seed"], rows["cpu"]["device"]) == (3, "cpu")
    assert rows["cpu"]["reason"].startswith("ours, recorded: ")
    assert rows["cpu"]["value"] != ledger("toy", [claim(toy)], [study(toy, "ci", 0, "cpu")])[1]["value"]


def test_a_value_that_is_no_number_decides_nothing_and_leaves_json_whole(toy):
    broken = claim(toy, kind="identity", measure=lambda rows: Estimate(float("nan"), 3))
    row = ledger("toy", [broken], [study(toy, "ci", 0, "cpu")])[0]
    assert (row["verdict"], row["value"]) == ("undecided", None)
    assert "not a finite number" in row["reason"]


def test_a_failing_digest_is_never_called_the_papers_error(toy):
    fails = claim(toy, source="digest", accept=(5.0, 6.0))
    assert ledger("toy", [fails], [study(toy, "ci", 0, "cpu")])[0]["reason"].startswith(FROM_A_SUMMARY)


def test_a_failed_condition_leaves_the_claim_undecided(toy, monkeypatch):
    broken = study(toy, "ci", 0, "cpu")
    broken.live.loc[0, "failure"] = "ArithmeticError: no"
    row = ledger("toy", [claim(toy)], [broken])[0]
    assert row["verdict"] == "undecided"
    assert "ArithmeticError" in row["reason"]


def test_a_claim_that_nothing_can_run_is_listed_with_its_reason():
    row = ledger("toy", [claim(experiment=None, measure=None, reason="needs the authors' data")], [])[0]
    assert (row["verdict"], row["headline"], row["reason"]) == ("not run", True, "needs the authors' data")


@pytest.mark.parametrize(
    ("listed", "studied"),
    [([claim(), claim()], True), ([claim(amends="T-9")], True), ([claim(id="T-2")], False)],
)
def test_a_ledger_that_cannot_be_right_is_refused(toy, listed, studied):
    listed = [dataclasses.replace(one, experiment=toy) for one in listed]
    with pytest.raises(ValueError, match=r"toy|Toy"):
        ledger("toy", listed, [study(toy, "ci", 0, "cpu")] if studied else [])


def states(toy) -> dict[str, str]:
    found = record_states([claim(toy)], [study(toy, "ci", 0, "cpu")])
    return {state["tier"]: state["state"] for state in found}


def test_a_record_is_stale_only_if_its_ci_rows_disagree(toy, recorded):
    save(recorded(toy))
    assert states(toy) == {"cpu": "unchanged", "gpu": "missing"}
    other = recorded(toy)
    save(recorded(toy, ci_rows=other.ci_rows.assign(square=other.ci_rows["square"] + 1e-9)))
    assert states(toy)["cpu"] == "stale"


def test_a_trained_column_is_compared_through_the_statistic(toy, recorded):
    ci = recorded(toy).ci_rows
    save(recorded(toy, ci_rows=ci.assign(value=ci["value"] + 0.01)))
    assert states(toy)["cpu"] == "unchanged"
    save(recorded(toy, ci_rows=ci.assign(value=ci["value"] + 10.0)))
    assert states(toy)["cpu"] == "stale"


@pytest.mark.parametrize(("apart", "state"), [(3.9, "unchanged"), (4.1, "stale")])
def test_a_statistic_may_move_by_four_joint_standard_errors(toy, recorded, apart, state):
    now = study(toy, "ci", 0, "cpu").live
    error = mean(now.loc[now["shift"] == 0, "value"]).error
    moved = recorded(toy).ci_rows
    save(recorded(toy, ci_rows=moved.assign(value=moved["value"] + apart * 2**0.5 * error)))
    assert states(toy)["cpu"] == state


def compared(toy, record, live=None, *claims, tier="ci", seed=0, device="cpu"):
    rows = record.ci_rows if live is None else live
    return staleness(claims, Study(toy, tier, seed, device, rows, {}), record)


def test_a_record_with_more_conditions_at_tier_ci_is_compared_on_those_of_today(toy, recorded, monkeypatch):
    made = recorded(toy)
    monkeypatch.setattr(toy, "tiers", {**toy.tiers, "ci": {"draws": 10, "shifts": (1.0,)}})
    live = study(toy, "ci", 0, "cpu").live
    assert len(live) == len(made.ci_rows) / 2
    assert compared(toy, made, live) == []
    assert compared(toy, made, live.assign(square=0.0)) == ["square: 10 of 10 rows differ"]
    monkeypatch.setattr(toy, "tiers", {**toy.tiers, "ci": {"draws": 10, "shifts": (1.0, 2.0)}})
    assert compared(toy, made, study(toy, "ci", 0, "cpu").live)


@pytest.mark.parametrize("other", [{"tier": "cpu"}, {"seed": 1}, {"device": "cuda"}])
def test_rows_that_were_not_made_alike_are_not_compared(toy, recorded, other):
    made = recorded(toy)
    live = made.ci_rows.assign(count=-1)
    assert compared(toy, made, live)
    assert compared(toy, made, live, **other) is None
    save(made)
    found = Study(toy, **{"tier": "ci", "seed": 0, "device": "cpu"} | other, live=live, records={"cpu": made})
    assert record_states([], [found])[0]["state"] == "not compared"


def test_rows_of_a_clock_alone_are_not_compared_and_its_integers_are(toy, recorded):
    made = recorded(toy)
    counted = dataclasses.replace(made, ci_rows=made.ci_rows[["value", "count"]])
    clock = claim(toy, unit="seconds")
    assert compared(toy, counted, counted.ci_rows * 7, clock) == ["count: 20 of 20 rows differ"]
    assert compared(toy, counted, counted.ci_rows.assign(value=0.0), clock) == []
    seconds = dataclasses.replace(made, ci_rows=made.ci_rows[["value"]].rename(columns={"value": "seconds"}))
    assert compared(toy, seconds) is None
    assert compared(toy, dataclasses.replace(made, ci_rows=made.ci_rows[["value"]]), None, clock) is None


def test_a_statistic_that_asks_a_clock_is_compared_with_the_clock_as_it_was(toy, recorded, monkeypatch):
    """A measure that refuses where arms had unequal seconds must not call a record stale on a busy machine."""
    made = recorded(toy)
    made = dataclasses.replace(made, ci_rows=made.ci_rows.assign(own=1.0))

    def guarded(rows):
        if rows["own"].max() > 1.05:
            raise ValueError("unequal seconds")
        return mean(rows["value"])

    busy, moved = made.ci_rows.assign(own=3.0), made.ci_rows.assign(own=3.0, value=made.ci_rows["value"] + 10)
    assert len(compared(toy, made, busy, claim(toy, measure=guarded))) == 1
    monkeypatch.setattr(toy, "clocks", ("own",), raising=False)
    assert compared(toy, made, busy, claim(toy, measure=guarded)) == []
    assert compared(toy, made, moved, claim(toy, measure=guarded))


def test_a_float_that_no_claim_reads_is_compared_as_a_whole(toy, recorded):
    made = recorded(toy)
    (reason,) = compared(toy, made, made.ci_rows.assign(value=made.ci_rows["value"] * 1000))
    assert reason.startswith("value: the middle of the column is ")
    assert compared(toy, made, made.ci_rows.assign(value=np.nan)) == [
        "value: 20 of 20 numbers finite then, 0 of 20 now"
    ]


def test_a_statistic_that_has_lost_its_value_is_stale(toy, recorded):
    made = recorded(toy)
    first = made.ci_rows["value"].where(made.ci_rows.index > 0)
    (reason,) = compared(toy, made, made.ci_rows.assign(value=first), claim(toy))
    assert reason.startswith("T-1: 0.")
    assert reason.endswith(" then, no value now")
    lost = dataclasses.replace(made, ci_rows=made.ci_rows.assign(value=first))
    assert compared(toy, lost, None, claim(toy)) == [], "no value then and none now"
    assert compared(toy, lost, made.ci_rows, claim(toy)), "no value then and one now"


def test_a_caption_names_each_record_and_the_live_run(toy, recorded):
    save(recorded(toy))
    found = study(toy, "ci", 3, "cpu")
    assert found.provenance() == [
        "recorded on a CPU: one core, 2026-01-01, seed 0",
        "small, in this build, seed 3",
    ]
    assert found.rows.groupby("tier")["recorded"].unique().map(list).to_dict() == {"ci": [False], "cpu": [True]}
    assert found.rows.index.is_unique
    assert len(repr(found).splitlines()) == 1, "its tables are not printed"


def test_the_best_rows_are_those_of_the_largest_tier_that_ran(toy, recorded):
    assert study(toy, "ci", 0, "cpu").best["count"].unique() == [10]
    save(recorded(toy))
    assert study(toy, "ci", 0, "cpu").best["count"].unique() == [100]
    own = study(toy, "cpu", 3, "cpu")
    assert own.best.equals(own.live), "a rerunner's own run of a recorded tier"
    save(recorded(toy, tier="gpu"))
    largest = study(toy, "cpu", 3, "cpu")
    assert largest.best["count"].unique() == [1000]
    assert (largest.largest, largest.sizes) == ("gpu", toy.at("gpu"))
    assert (own.largest, own.sizes) == ("cpu", toy.at("cpu"))


def test_unknown_tiers_and_devices_are_refused(toy):
    for wrong in (("xl", "cpu"), ("ci", "tpu")):
        with pytest.raises(ValueError, match="unknown"):
            study(toy, wrong[0], 0, wrong[1])


def test_a_live_run_whose_condition_failed_says_which_and_why(toy, monkeypatch):
    monkeypatch.setitem(toy.tiers, "ci", {"draws": 10, "shifts": (0.0, -1.0)})
    with pytest.raises(
        RuntimeError, match=r"Toy at tier ci: the condition {'shift': -1.0} failed: ArithmeticError: neg"
    ):
        study(toy, "ci", 0, "cpu")


def judged(toy, **changes) -> dict:
    """The live row of a claim of the toy experiment."""
    return ledger("toy", [claim(toy, **changes)], [study(toy, "ci", 0, "cpu")])[0]


def test_a_control_is_judged_by_the_same_criterion_on_the_same_rows(toy):
    bare = judged(toy)
    assert bare["control"] == ""
    arm = judged(toy, control=lambda rows: mean(rows["value"] + 50))["control"]
    assert (arm["verdict"], arm["n"]) == ("fails", 20)
    assert arm["value"] == pytest.approx(mean(study(toy, "ci", 0, "cpu").live["value"] + 50).value)
    assert (
        judged(toy, control=lambda rows: mean(rows.loc[rows["shift"] == 0, "value"]))["control"]["verdict"] == "holds"
    )
    lost = judged(toy, control=lambda rows: mean(rows["nowhere"]))["control"]
    assert (lost["value"], lost["verdict"]) == (None, "undecided")
    assert "nowhere" in lost["reason"]
    assert (
        judged(toy, control="the zero map is the statement itself")["control"] == "the zero map is the statement itself"
    )


def test_a_comparison_is_judged_by_the_same_criterion_and_named(toy):
    row = judged(toy, comparison=("twice the draws", lambda rows: mean(rows["value"] + 50)))
    assert (row["comparison"]["name"], row["comparison"]["verdict"]) == ("twice the draws", "fails")
    assert judged(toy)["comparison"] is None


def test_what_a_claim_says_besides_belongs_to_no_terms(toy):
    besides = {
        "control": "none",
        "horizon": "10 draws",
        "scale": {"ci": "ours"},
        "made_of": "real data",
        "matters": 1.0,
    }
    assert terms(claim(toy, **besides), "ci") == terms(claim(toy), "ci")


def test_a_scale_goes_with_the_tier_unless_the_claim_says_another(toy):
    def measure(rows):
        return mean(rows["value"])

    drawn = claims.statistic("T-1", "$1=1$.", toy, measure, "mean", claims.at_most(1))
    assert [drawn.scale_at(tier) for tier in ("ci", "cpu", "gpu")] == ["toy", "ours", "paper"]
    larger = dataclasses.replace(drawn, scale={"cpu": "paper"})
    assert [larger.scale_at(tier) for tier in ("ci", "cpu", "gpu")] == ["toy", "paper", "paper"]
    exact = claims.computed("T-1", "$1=1$.", toy, measure, "value", claims.at_most(1))
    assert exact.scale_at("gpu") is None
    with pytest.raises(ValueError, match="T-1: a scale at xl"):
        claim(toy, scale={"xl": "paper"})


def test_a_number_of_the_paper_stands_beside_ours_in_one_unit(toy):
    row = judged(toy, paper_value=Published(1.5, "m", 0.25), unit="m")
    assert row["paper_value"] == "1.5 ± 0.25 m"
    assert row["effect"]["difference"] == pytest.approx(row["value"] - 1.5)
    other = judged(toy, paper_value=Published(1.5, "m", ours=lambda rows: Estimate(2.0, 3)), unit="share")
    assert (other["effect"]["ours"], other["effect"]["difference_low"]) == (2.0, 0.5)
    endless = judged(toy, paper_value=Published(1.5, "m", ours=lambda rows: Estimate(np.inf, 3)), unit="share")[
        "effect"
    ]
    assert (endless["unit"], endless["paper"], endless["ours"], endless["ratio"]) == ("m", 1.5, None, None)
    with pytest.raises(ValueError, match="T-1: the paper's number is in 'm', ours in 'share'"):
        claim(toy, paper_value=Published(1.5, "m"), unit="share")


def test_an_undecided_row_says_which_of_the_three_it_is(toy):
    bare = judged(toy)
    inside = (bare["value"] + bare["high"]) / 2
    few = judged(toy, accept=(inside, np.inf))
    assert (few["verdict"], few["undecided"]["kind"]) == ("undecided", "too few")
    absent = judged(toy, accept=(inside, np.inf), matters=10.0)["undecided"]
    assert absent == {"kind": "absent", "excluded": pytest.approx(bare["high"] - inside)}
    assert bare["undecided"] is None
