"""Topic position: the rows, measures and figures of what is emitted at one position."""

import numpy as np
import pandas as pd
import pytest

from derived.lab.experiment import run_condition, run_experiment
from derived.lab.rng import stream
from derived.papers.cactus import matching, position, witness
from derived.papers.cactus.data.pairs import random_pairs
from derived.papers.cactus.marks import RULES
from derived.papers.cactus.measures import ratio
from derived.papers.cactus.model.divergences import divergence
from derived.papers.cactus.model.exact import output_law
from derived.papers.cactus.model.rules import Cactus

EXPERIMENTS = (position.RandomPairs, position.NearOptimal)


def test_no_divergence_exceeds_that_of_the_draft_for_peaked_laws():
    """`cac-dominated`: some of these probabilities are below 1e-16 of the verifier's."""
    for kind in ("noised", "independent"):
        p, q = random_pairs(400, 12, kind, stream(1, "pairs", kind))
        for delta in (0.001, 0.25, 1.0):
            emitted = output_law(p, q, Cactus(delta))
            for name in ("kl", "chi2", "hellinger", "js"):
                draft = divergence(p, q, name)
                some = draft.isfinite()
                excess = (divergence(emitted, q, name) - draft)[some] / draft[some].clamp(min=1)
                assert excess.max() <= witness.rounding(12)


def test_rows_follow_the_seed():
    small = position.RandomPairs.at("tiny")
    condition = small.conditions()[1]
    first, again, other = (run_condition(small, condition, seed, "cpu") for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert not np.allclose(first["acceptance"], other["acceptance"])


def test_rivals_of_cactus_keep_as_many_drafts_and_are_held_to_their_own_kl():
    rows = run_experiment(position.NearOptimal.at("tiny"), seed=0, device="cpu")
    near = rows[(rows["kind"] == "noised") & (rows["matched"] == 0.01)]
    kept = near.groupby("rule")["acceptance"].mean()
    assert set(kept.index) == {"cactus", "lenience", "interp"}
    assert np.ptp(kept) < 1e-6
    assert near.groupby("rule")["kl"].mean().nunique() == 3
    assert (near["gain"] <= near["best_gain"] + 1e-9).all()


@pytest.mark.parametrize(("name", "knob"), [("cactus", 0.0), ("cactus", 0.1), *position.OTHERS])
def test_every_rule_emits_what_its_definition_says(name, knob):
    """`cac-emitted`, `cac-lenience`: the law of each rule is that of acceptance and recovery written out by hand."""
    p, q = random_pairs(100, 12, "independent", stream(2, "definitions"))
    gap = output_law(p, q, matching.rule_of(name, knob)) - witness.law_by_definition(name, knob, p, q)
    assert gap.abs().max() <= witness.rounding(12)


def test_rows_have_every_rival(rows):
    assert set(rows[position.RandomPairs]["rule"]) == {"cactus", *matching.RIVALS}


def band_by_halving(p, q, budget: float) -> np.ndarray:
    """clip(p, b q, a q), the largest a whose law, with b such that it sums to one, is within the budget of q."""

    def law(a: float) -> np.ndarray:
        low, high = 0.0, 1.0
        for _ in range(80):
            b = (low + high) / 2
            low, high = (b, high) if np.clip(p, b * q, a * q).sum() < 1 else (low, b)
        return np.clip(p, high * q, a * q)

    low, high = 1.0, float((p / q).max())
    for _ in range(80):
        h = law(a := (low + high) / 2)
        low, high = (a, high) if np.sum(h * np.log(h / q)) < budget else (low, a)
    return law(low)


def emitted_by_loops(name: str, knob: float, p, q) -> np.ndarray:
    """What a rule emits, draft by draft: the share of it that is kept, and the law that stands in for the rest."""
    entropy, emitted = -np.sum(q * np.log(q)), np.zeros_like(q)
    likeliest = np.argsort(-q)[: int(max(knob, 1))]
    if name == "interp":
        target = knob * p + (1 - knob) * q
    elif name == "mentored":
        target = band_by_halving(p, q, knob)
    for n in range(len(q)):
        if name == "cactus":
            gamma = min(q[n] + np.sqrt(2 * knob * q[n] * (1 - q[n])), 1)
            target = np.where(np.arange(len(q)) == n, gamma, q * (1 - gamma) / (1 - q[n]))
        if name in ("cactus", "interp", "mentored"):
            keep, instead = min(1, target[n] / p[n]), np.maximum(target - p, 0)
        elif name == "lenience":
            keep, instead = min(1, q[n] / (knob * p[n])), np.maximum(q - p, 0)
        elif name == "tas":
            keep = float(q[n] > min(knob, knob**0.5 * np.exp(-entropy)))
            instead = (np.arange(len(q)) == q.argmax()).astype(float)
        else:
            keep = float(n in likeliest)
            instead = np.maximum(np.isin(np.arange(len(q)), likeliest) - p, 0)
        emitted[n] += p[n] * keep
        if keep < 1:
            emitted += p[n] * (1 - keep) * instead / instead.sum()
    return emitted


@pytest.mark.parametrize(("name", "knob"), [("cactus", 0.01), ("cactus", 1.0), *position.OTHERS])
def test_the_witness_of_the_laws_is_that_of_plain_loops(name, knob):
    """`cac-emitted`, `cac-lenience`, `cac-mentored`: what the rows compare with, written without the package."""
    p, q = random_pairs(10, 6, "independent", stream(6, "loops"))
    p, q = (0.98 * law + 0.02 / 6 for law in (p, q))
    for found, *pair in zip(witness.law_by_definition(name, knob, p, q), p, q, strict=True):
        by_loops = emitted_by_loops(name, knob, *(law.numpy() for law in pair))
        np.testing.assert_allclose(found.numpy(), by_loops, rtol=0, atol=1e-9)  # of the halving; the rest is rounding


def test_share_is_a_ratio_of_totals_and_near_optimal_picks_budget_and_kind():
    table = pd.DataFrame({"gain": [0.1, 0.3], "best_gain": [0.2, 0.3], "kind": "noised", "rule": "cactus"})
    other = table.assign(matched=0.25, kind="x", gain=0.02)
    table = pd.concat([table.assign(matched=0.25), table.assign(matched=0.01, gain=0.1), other])
    assert position.share_of_best("noised", 0.25)(table).value == pytest.approx(0.8)
    assert position.share_of_best("noised", 0.01)(table).value == pytest.approx(0.4)
    assert ratio(table["gain"], 2 * table["gain"]).high == pytest.approx(0.5)
    table = pd.concat([table, table.assign(rule="lenience", gain=0.05)])
    assert position.share_of_best("noised", 0.01, "lenience")(table).value == pytest.approx(0.2)
    assert position.share_of_best("noised", 0.01)(table).value == pytest.approx(0.4)


def test_the_control_would_hold_if_total_variation_came_cheaper(rows):
    table = rows[position.RandomPairs]
    assert position.CONTROL.judge(position.CONTROL.measure(table))[0] == "fails"
    cheaper = table.assign(tv=0.85 * table["tv"])
    assert position.CONTROL.judge(position.CONTROL.measure(cheaper))[0] == "holds"


@pytest.mark.parametrize("kl", [0.3, 0.4])
def test_which_law(tells, kl):
    rows = pd.DataFrame({"token": [1, 2], "p": [0.3, 0.7], "q": [0.6, 0.4], "emitted": 0.5, "mixture": 0.5})
    tells(position.which_law(rows.assign(kl_emitted=kl, kl_mixture=0.01, delta=0.05)), f"emitted {kl:.3f}")


@pytest.mark.parametrize("gain", [0.1, 0.2])
def test_price(tells, grid, gain):
    rows = grid(kind=("noised", "independent"), rule=tuple(RULES), pair=(0, 1)).assign(V=5, knob=0.01)
    rows = rows.assign(tv=gain, exact_acceptance=0.5, acceptance=0.5 + gain)
    tells(position.price(rows), f"Cactus {gain:.2f} for {gain:.2f}")


@pytest.mark.parametrize("level", [0.5, 0.6])
def test_frontier(tells, grid, level):
    rows = grid(rule=tuple(RULES), kl=(0.0, 0.1, 0.2))
    rows = rows.assign(knob=rows["kl"], acceptance=level + rows["kl"])
    tells(position.frontier(rows), f"Cactus {level + 0.05:.3f}")


@pytest.mark.parametrize("ratio", [4.0, 5.0])
def test_flat_family(tells, ratio):
    rows = pd.DataFrame({"V": [2, 4], "delta": [0.5, 1 / 6], "kl": 0.69, "ratio": [1.4, ratio], "predicted": 2.0})
    tells(position.flat_family(rows.assign(tier="ci", recorded=False)), f"to {ratio:g} at V = 4")
