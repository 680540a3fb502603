"""Topic trained: the rows of the trained pairs, measures on tables with known answers, trained."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from derived.lab.rng import stream
from derived.papers.cactus import trained
from derived.papers.cactus.data.language import Grammar
from derived.papers.cactus.data.small_lm import LanguageModel
from derived.papers.cactus.matching import rule_of
from derived.papers.cactus.model.divergences import divergence
from derived.papers.cactus.model.exact import output_law
from derived.papers.cactus.trained import CLAIMS, AmendedInterpolation, TrainedPair

GRAMMAR = Grammar()
EXPERIMENTS = (TrainedPair, AmendedInterpolation)


SHARES = {  # (shape, draft, rule, knob or matched): how many of 40 texts are without fault
    **{("truncated", "trained", "cactus", 0.0): 30, ("truncated", "trained", "cactus", 1.0): 29},
    **{("truncated", "trained", "cactus", 0.1): 27, ("truncated", "trained", "cactus", 0.01): 31},
    **{("truncated", "trained", "lenience", 1.0): 28, ("truncated", "trained", "mentored", 1.0): 25},
    **{("plain", "trained", "cactus", 0.0): 28, ("plain", "trained", "cactus", 1.0): 10},
    **{("plain", "unrelated", "cactus", 0.0): 27, ("truncated", "trained", "tas", 1.0): 26},
    **{("truncated", "trained", "interp", 1.0): 3},
}
#: What each claim is of these: a difference of shares in fortieths; 12.a per cent of the 30 that exact sampling keeps.
DIFFERENCES = {"CAC-12.a": -100 / 30 * 40, "CAC-12.b": -5, "CAC-12.c": -18, "CAC-13.b": 3}


@pytest.mark.parametrize("claim", [one for one in CLAIMS if one.experiment is TrainedPair], ids=lambda one: one.id)
def test_every_trained_claim_picks_its_own_rows(claim):
    tables = []
    for (shape, draft, rule, knob), good in SHARES.items():
        facts = {"shape": shape, "draft": draft, "rule": rule, "knob": knob, "prompt": range(40)}
        facts |= {"matched": 0.0 if rule == "cactus" else knob, "kept": good / 4, "blocks": 10.0}
        facts |= {"valid": (np.arange(40) < good).astype(float), "surprise": good / 20}
        tables += [pd.DataFrame({"pair": pair, **facts}) for pair in (0, 1)]
    table = pd.concat(tables, ignore_index=True)
    found = claim.measure(table)
    assert found.value == pytest.approx(DIFFERENCES[claim.id] / 40)
    assert found.n == 2
    if callable(claim.control):
        assert claim.judge(claim.control(table))[0] == "fails"


def test_the_worst_of_several_rules_is_judged_with_all_of_them():
    """Bonferroni: each interval at a third of the level, the lowest end and the lowest value decide."""
    shifts = {"a": (0.1, 0.2, 0.15), "b": (0.0, 0.3, 0.1), "c": (0.0, 0.0, 0.01), "exact": (0.0, 0.0, 0.0)}
    table = pd.DataFrame(
        [(rule, pair, 0.9 - shift) for rule, each in shifts.items() for pair, shift in enumerate(each)]
    ).set_axis(["rule", "pair", "valid"], axis=1)
    settings = [f"rule == '{rule}'" for rule in "abc"]
    found = trained.worst_of("valid", settings, "rule == 'exact'")(table.assign(kept=1.0, blocks=1.0))
    ends = [stats.ttest_1samp(np.negative(shifts[rule]), 0).confidence_interval(1 - 0.001 / 3).low for rule in "abc"]
    assert found.value == pytest.approx(-0.15)
    assert found.low == pytest.approx(min(ends))


def test_amended_interpolation_is_compared_at_one_acceptance_on_pairs_of_its_own(rows):
    """CAC-13.a: rows of Cactus and of its rival, and the draft alone as the control; no pair of another record."""
    table = rows[AmendedInterpolation]
    assert set(table["pair"]) == {100, 101}
    assert set(table["rule"]) == {"cactus", "interp inside", "draft"}
    claim = next(one for one in CLAIMS if one.id == "CAC-13.a")
    good = table["rule"].map({"cactus": 0.8, "interp inside": 0.7, "draft": 0.0}) + 0.01 * (table["pair"] == 101)
    ahead = 0.02 * ((table["pair"] == 101) & (table["rule"] == "cactus"))
    found = claim.measure(table.assign(valid=good + ahead))
    assert found.value == pytest.approx(0.11)
    assert claim.judge(claim.control(table.assign(valid=good)))[0] == "fails"


def model(depth: int, name: str) -> LanguageModel:
    generator = stream(4, name)
    return LanguageModel(width=16, depth=depth, head=8, generator=generator, dtype=torch.float64).eval()


SIZES = TrainedPair(length=20, prompt=6, prompts=5, m=3)


def test_the_account_is_that_of_every_drafted_position():
    """TV and KL of each text again, position by position, from the distributions of its blocks."""
    prompts, models, blocks = GRAMMAR.sample(5, 6, stream(8)), (model(1, "draft"), model(2, "verifier")), []
    rule = rule_of("cactus", 0.3)
    rows = SIZES._rows(*models, prompts, "plain", rule, stream(9))
    SIZES.write(*models, prompts, rule, "plain", stream(9), blocks.append)
    spent = {text: [] for text in range(5)}
    for block in blocks:
        for row, text in enumerate(block.texts.tolist()):
            for place in range(min(int(block.counts[row]), block.draft_laws.shape[1])):
                p, q = block.draft_laws[row, place], block.verifier_laws[row, place]
                spent[text].append([divergence(output_law(p, q, rule), q, name).item() for name in ("tv", "kl")])
    assert [len(spent[text]) for text in range(5)] == rows["reached"].tolist()
    for text in range(5):
        assert np.allclose(np.mean(spent[text], axis=0), rows.loc[text, ["tv", "kl"]].astype(float), rtol=2**-23)


LOSSY, EXACT = trained.cactus("plain", 1.0), trained.cactus("plain", 0.0)


def trained_rows(*shifts: float) -> pd.DataFrame:
    """A pair of models per shift, 400 prompts; the budget 1 keeps one draft more per block and loses validity."""
    tables = []
    for pair, shift in enumerate(shifts):
        for knob in (0.0, 1.0):
            facts = {"pair": pair, "shape": "plain", "draft": "trained", "rule": "cactus", "knob": knob}
            facts |= {"matched": 0.0, "blocks": 10.0, "kept": 30.0 + 10 * knob, "surprise": 1.0}
            valid = (np.arange(400) < round(400 * (0.8 - shift * knob))).astype(np.float32)
            tables.append(pd.DataFrame({**facts, "prompt": range(400), "valid": valid}))
    return pd.concat(tables, ignore_index=True)


def test_the_unit_is_the_pair_of_models():
    """Student's interval over one difference per pair, however many prompts there are."""
    losses = [0.1, 0.25, 0.3, 0.15]
    found = trained.less("valid", LOSSY, EXACT)(trained_rows(*losses))
    interval = stats.ttest_1samp(np.negative(losses), 0).confidence_interval(0.999)
    assert (found.value, found.n) == (pytest.approx(-0.2), 4)
    assert (found.low, found.high) == pytest.approx(tuple(interval), abs=1e-6)
    with pytest.raises(ValueError, match="at least 2"):
        trained.less("valid", LOSSY, EXACT)(trained_rows(0.1))
    holed = trained_rows(*losses).assign(valid=lambda rows: rows["valid"].astype(float).where(rows.index != 7))
    with pytest.raises(ValueError, match="finite"):
        trained.less("valid", LOSSY, EXACT)(holed)


def test_drafts_kept_per_block_are_a_ratio_of_totals():
    """Not a mean over texts of ratios, which gives a short text's few blocks too much weight."""
    table = trained_rows(0.2, 0.2)
    few = table["prompt"] % 4 == 0
    table = table.assign(blocks=np.where(few, 2.0, 10.0), kept=np.where(few, 20.0, 30.0))
    table.loc[table["knob"] == 1, ["blocks", "kept"]] = (5.0, 25.0)
    assert trained.gained(LOSSY, EXACT)(table).value == pytest.approx(100 * (5 * 32 / 110 - 1))
