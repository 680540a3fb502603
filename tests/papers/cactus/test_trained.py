"""Topic trained: the rows of the trained pairs, measures on tables with known answers, figures."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from derived.lab import training
from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.cactus import trained
from derived.papers.cactus.data.language import Grammar
from derived.papers.cactus.data.small_lm import LanguageModel
from derived.papers.cactus.marks import RULES
from derived.papers.cactus.matching import rule_of
from derived.papers.cactus.model.divergences import divergence
from derived.papers.cactus.model.exact import output_law
from derived.papers.cactus.model.generate import speculative_generate
from derived.papers.cactus.trained import PairTime, TrainedPair

GRAMMAR = Grammar()
CLAIMS = (*trained.TRADE_OFF, *trained.RIVALS)
EXPERIMENTS = (TrainedPair, PairTime)


SHARES = {  # (shape, draft, rule, knob or matched): how many of 40 texts are without fault
    **{("truncated", "trained", "cactus", 0.0): 30, ("truncated", "trained", "cactus", 1.0): 29},
    **{("truncated", "trained", "cactus", 0.1): 25},
    **{("plain", "trained", "cactus", 0.0): 28, ("plain", "trained", "cactus", 0.01): 27},
    **{("plain", "trained", "cactus", 1.0): 10, ("plain", "unrelated", "cactus", 0.0): 25},
    **{("plain", "unrelated", "cactus", 1.0): 5, ("truncated", "trained", "interp", 1.0): 20},
    **{("truncated", "trained", "tas", 1.0): 26, ("truncated", "trained", "topk", 1.0): 24},
    **{("plain", "trained", "interp", 0.01): 19, ("plain", "trained", "mentored", 0.01): 31},
    **{("plain", "trained", "lenience", 0.01): 33},
}
#: What each claim is of these: a difference of shares in fortieths, or (12.a, d, g) of what goes with it; 12.j a share.
DIFFERENCES = {
    **{
        "CAC-12.a": -100 / 30 * 40,  # per cent of the 30 fortieths that exact sampling keeps
        "CAC-12.i": -100 / 30 * 40,
        "CAC-12.b": -1,
        "CAC-12.c": -18,
        "CAC-12.f": -20,
        "CAC-12.j": 25,
    },
    **{"CAC-13.a": 9, "CAC-13.b": 3, "CAC-13.c": 5, "CAC-13.d": 8, "CAC-13.e": -4, "CAC-13.f": -6},
}


@pytest.mark.parametrize("claim", [one for one in CLAIMS if one.experiment is TrainedPair], ids=lambda one: one.id)
def test_every_trained_claim_picks_its_own_rows(claim):
    tables = []
    for (shape, draft, rule, knob), good in SHARES.items():
        facts = {"shape": shape, "draft": draft, "rule": rule, "knob": knob, "prompt": range(40)}
        facts |= {"matched": 0.0 if rule == "cactus" else knob, "kept": good / 4, "blocks": 10.0}
        facts |= {"valid": (np.arange(40) < good).astype(float), "surprise": good / 20}
        tables += [pd.DataFrame({"pair": pair, **facts}) for pair in (0, 1)]
    found = claim.measure(pd.concat(tables, ignore_index=True))
    assert found.value == pytest.approx(DIFFERENCES[claim.id] / 40)
    assert found.n == 2


def test_a_gain_is_judged_only_in_pairs_that_have_room_for_it():
    """A pair that keeps as much at a tenth of the budget says nothing of the gain, and is left out."""
    claim = next(one for one in CLAIMS if one.id == "CAC-12.a")
    kept = {0: (20.0, 29.9, 30.0), 1: (20.0, 25.0, 30.0), 2: (20.0, 26.0, 30.0)}  # by pair, at budgets 0, 0.1 and 1
    rows = pd.DataFrame(
        [(pair, *each) for pair, three in kept.items() for each in zip((0.0, 0.1, 1.0), three, strict=True)]
    )
    rows = rows.set_axis(["pair", "knob", "kept"], axis=1).assign(blocks=10.0, valid=1.0, surprise=1.0)
    rows = rows.assign(shape="truncated", draft="trained", rule="cactus", matched=0.0)
    found = claim.measure(rows)
    assert (found.value, found.n) == (pytest.approx(50.0), 2)
    with pytest.raises(ValueError, match="no pair has room"):
        claim.measure(rows[rows["pair"] == 0])


@pytest.fixture
def calls(monkeypatch):
    """What ``speculative_generate`` was called with: prompts, state of the generator, temperature and top-p."""
    found = []

    def note(draft, verifier, prompts, *, rule, generator, **options):
        found.append((prompts.clone(), generator.get_state(), (options.get("temperature"), options.get("top_p"))))
        return speculative_generate(draft, verifier, prompts, rule=rule, generator=generator, **options)

    monkeypatch.setattr(trained, "speculative_generate", note)
    return found


def test_knobs_are_set_on_other_prompts_than_those_that_judge(calls):
    small = dataclasses.replace(TrainedPair.at("tiny"), calibration=7, pairs=1)
    assert "failure" not in run_experiment(small, seed=0, device="cpu")
    tuned, judged = ([prompts for prompts, *_ in calls if len(prompts) == num] for num in (7, 5))
    assert (len(tuned), len(judged)) == (2, 2 * (2 + 5 + 2))  # laws; budgets, rivals, the unrelated draft
    judged, tuned = ({tuple(row) for ids in each for row in ids.tolist()} for each in (judged, tuned))
    assert (len(judged), len(tuned)) == (5, 7)
    assert not judged & tuned


def test_rules_of_one_setting_start_from_the_same_prompts_and_noise(calls):
    small = dataclasses.replace(TrainedPair.at("tiny"), pairs=1)
    assert "failure" not in run_experiment(small, seed=0, device="cpu")
    judged = [call for call in calls if len(call[0]) == 5]
    for prompts, state, _ in judged:
        assert torch.equal(prompts, judged[0][0])
        assert torch.equal(state, judged[0][1])
    published, plain = (0.6, 0.95), (None, None)  # temperature and top-p of the authors' script, and none of either
    assert [laws for *_, laws in judged] == [published] * 9 + [plain] * 9
    assert prompts.shape == (5, small.prompt)
    assert (prompts[:, 1:] > 0).all()


def model(depth: int, name: str) -> LanguageModel:
    generator = stream(4, name)
    return LanguageModel(width=16, depth=depth, head=8, generator=generator, dtype=torch.float64).eval()


SIZES = TrainedPair(length=20, prompt=6, prompts=5, m=3)


@pytest.mark.parametrize(
    "setting", [("cactus", 0.0), ("cactus", 0.3), ("interp", 0.4), ("tas", 0.1), ("mentored", 0.1)]
)
def test_every_token_is_accounted_for(setting):
    prompts, models = GRAMMAR.sample(5, 6, stream(8)), (model(1, "draft"), model(2, "verifier"))
    rows = SIZES._rows(*models, prompts, "plain", rule_of(*setting), stream(9))
    written = rows["kept"] + rows["blocks"]
    assert written.between(14, 14 + 3).all()  # the last block may reach beyond the end
    assert (rows["reached"] <= 14).all()
    assert (rows["kept"] <= rows["drafted"]).all()
    assert (rows["drafted"] <= 3 * rows["blocks"]).all()
    assert bool((rows["tv"] > 1e-9).all()) == (setting != ("cactus", 0.0))
    assert (rows["valid"] == (rows["fault"] == 14)).all()


def test_the_account_is_that_of_every_drafted_position():
    """TV and KL of each text again, position by position, from the laws of its blocks."""
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


@torch.no_grad()
def test_surprise_by_hand():
    ids, one = GRAMMAR.sample(3, 12, stream(8)), model(2, "verifier")
    laws = torch.log_softmax(one(ids).logits, dim=-1)
    by_hand = -torch.stack([laws[:, t - 1].gather(-1, ids[:, t : t + 1]) for t in range(4, 12)]).mean(dim=0)
    assert torch.allclose(trained.surprise(one, ids, 4), by_hand.squeeze(dim=-1), atol=1e-12)


def test_training_lowers_the_loss_and_follows_its_generator():
    options = {"steps": 40, "batch_size": 8, "length": 24, "lr": 3e-3}
    first, again = (trained.train(model(2, "a"), GRAMMAR, generator=stream(7), **options) for _ in range(2))
    assert first[-5:].mean() < first[:5].mean() - 0.5
    assert torch.equal(first, again)


def test_no_gradient_of_a_step_is_longer_than_one(monkeypatch):
    """The sum of squares over all weights; those that the model is given are large, so that its gradients are."""
    adamw, lengths = training.adamw, []

    def measured(model, **options):
        optimiser = adamw(model, **options)

        def measure(*_):
            lengths.append(sum(weight.grad.square().sum() for weight in model.parameters()).item() ** 0.5)

        optimiser.register_step_post_hook(measure)
        return optimiser

    monkeypatch.setattr(training, "adamw", measured)
    steep = model(2, "steep")
    with torch.no_grad():
        steep.embedding *= 30
    trained.train(steep, GRAMMAR, steps=5, batch_size=8, length=24, lr=1e-3, generator=stream(7))
    assert lengths == pytest.approx([1] * 5, abs=1e-5)


def test_the_clock_begins_after_the_prompt_and_every_pass_gives_tokens(monkeypatch):
    sizes, verifier, events = PairTime(length=12, prompt=4, m=2), model(2, "verifier"), []
    monkeypatch.setattr(trained, "now", lambda device: events.append("now") or float(events.count("now")))
    verifier.register_forward_hook(
        lambda _, inputs, options, __: events.append(options["input_ids"].shape[1]), with_kwargs=True
    )
    prompt = GRAMMAR.sample(1, 4, stream(8))
    for setting, first in ((trained.Setting("alone", 0.0), 4), (trained.Setting("cactus", 0.0), 6)):
        events.clear()
        clock = sizes._clock(model(1, "draft"), verifier, prompt, "plain", setting, stream(2))
        assert events[:3] == [first, "now", 1 if first == 4 else 3]  # the prompt, with m drafts; then what is new
        assert clock["seconds"] == clock["passes"] == events.count("now") - 1
        assert clock["passes"] <= clock["tokens"] <= 8
    assert (
        sizes._clock(model(1, "draft"), verifier, prompt, "plain", trained.Setting("alone", 0.0), stream(2))["tokens"]
        == 7
    )


def test_the_clock_runs_every_setting_on_every_prompt_in_turning_order(rows):
    table = rows[PairTime]
    for _, part in table.groupby("shape"):
        orders = [list(zip(one["rule"], one["knob"], strict=True)) for _, one in part.groupby("prompt")]
        assert orders[0][1:] + orders[0][:1] == orders[1]
        assert orders[0][0] == ("alone", 0.0)
        assert len(set(orders[0])) == 1 + 2 + 5
    assert (table["seconds"] > 0).all()
    assert (table.query("rule == 'alone'")["tokens"] == 9).all()
    assert (table["passes"] <= table["tokens"]).all()
    assert table.query("rule != 'alone'")["tokens"].between(10 - 4, 10).all()  # but those of the first block


def test_speedup_is_that_of_the_slower_pair():
    def timed(pair: int, rule: str, knob: float, cost: float) -> pd.DataFrame:
        facts = {"pair": pair, "shape": "truncated", "rule": rule, "knob": knob, "prompt": range(6), "tokens": 10}
        return pd.DataFrame(facts | {"seconds": 10 * cost * np.linspace(0.9, 1.1, 6)})

    cases = ((0, "alone", 0.0, 3.0), (0, "cactus", 0.0, 9.0), (0, "cactus", 1.0, 2.0), (0, "tas", 5.0, 0.1))
    cases += ((1, "alone", 0.0, 3.0), (1, "cactus", 1.0, 2.5))
    claim = next(one for one in CLAIMS if one.experiment is PairTime)
    found = claim.measure(pd.concat([timed(*case) for case in cases]))
    assert found.value == pytest.approx(1.2)
    assert found.n == 6
    assert found.low == pytest.approx(1.2)  # both times rise and fall together


def test_the_slower_pair_may_be_the_one_that_is_less_sure():
    """One pair is 1.2 times as fast, surely; another 1.25 times, more or less: the slower may be as slow as that."""
    cells = [
        {"pair": pair, "prompt": prompt, "rule": rule, "knob": knob, "seconds": seconds}
        for pair, one, spread in ((0, 1.2, 0.0), (1, 1.25, 0.4))
        for prompt in range(20)
        for rule, knob, seconds in (("alone", 0.0, one + spread * (-1) ** prompt), ("cactus", 1.0, 1.0))
    ]
    claim = next(each for each in CLAIMS if each.id == "CAC-12.e")
    found = claim.measure(pd.DataFrame(cells).assign(shape="truncated", tokens=1))
    assert (found.value, found.high) == pytest.approx((1.2, 1.2))
    assert found.low < 1


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


def test_a_rival_stands_at_the_budget_that_it_matches():
    rows = pd.DataFrame({"rule": ["cactus", "cactus", "topk"], "knob": [0.0, 0.1, 3.0], "matched": [0.0, 0.0, 1.0]})
    assert trained.delta_of(rows).tolist() == [0.0, 0.1, 1.0]


def texts(grid, share: float) -> pd.DataFrame:
    cactus = grid(rule=("cactus",), knob=(0.0, 1.0), matched=(0.0,))
    rivals = grid(rule=tuple(rule for rule in RULES if rule != "cactus"), knob=(0.5,), matched=(1.0,))
    rows = pd.concat([cactus, rivals]).merge(
        grid(shape=("truncated", "plain"), pair=(0, 1), prompt=range(10))[["shape", "pair", "prompt"]], how="cross"
    )
    rows = rows.assign(draft="trained", kept=20.0 + 10 * rows["knob"], blocks=10.0)
    rows["knob"] += 0.1 * rows["pair"] * (rows["rule"] != "cactus")  # a rival's knob is set for each pair of models
    valid = (rows["prompt"] < 10 * share).astype(float)
    return rows.assign(valid=valid, fault=np.where(valid > 0, 8.0, 3.0), tier="ci", recorded=False)


def test_recorded_markers_are_filled_and_live_ones_open(grid):
    def faces(rows: pd.DataFrame) -> set[str]:
        lines = [line for ax in trained.trained_pair(rows).axes for line in ax.get_lines()]
        return {str(line.get_markerfacecolor()) for line in lines if line.get_marker() == "o"}

    recorded = texts(grid, 0.5).assign(tier="cpu", recorded=True)
    assert faces(texts(grid, 0.5)) == {"none"}
    assert "none" not in faces(pd.concat([recorded, texts(grid, 0.9)]))


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_figures_of_texts(tells, grid, share):
    rows = texts(grid, share)
    tells(trained.trained_pair(rows), f"truncated Cactus {share:.2f} at 2.0, {share:.2f} at 3.0")
    tells(trained.trained_pair(rows), f"truncated typical {share:.2f} at 2.5; ")
    tells(trained.where_faults_begin(rows), f"{share:.2f} at 0, {share:.2f} at 1")
    tells(trained.heat_of_rules(rows), f"plain, δ = 1: Cactus {share:.2f} (3.00 kept)")
