"""Real shapes and weights: the recurrence of a block, the rows, and measures that see a wrong form."""

import numpy as np
import pandas as pd
import pytest
import torch
from here import needs

from derived.lab.experiment import run_condition, run_experiment
from derived.lab.rng import stream
from derived.papers.homogenized import real
from derived.papers.homogenized.model.chain import overlaps
from derived.papers.homogenized.model.heads import normalise, simplex_gram
from derived.papers.homogenized.model.overlaps import hot_block
from derived.papers.homogenized.real import OneLayer, Reactions, Sentences

EXPERIMENTS = (OneLayer,)
COLUMNS = {OneLayer: {"weights", "eta", "replicate", "layers"}}


def test_rows_have_the_promised_columns_and_no_failure(rows, complete):
    complete(rows, COLUMNS)


def test_a_block_without_weights_moves_nothing_and_keeps_length():
    gram = simplex_gram(5, 0.3)
    assert torch.allclose(hot_block(gram, 0.0, 0.0, 1.0), gram)
    moved = hot_block(gram, 0.2, 0.5, 0.3)
    assert torch.allclose(moved.diagonal(), torch.ones(5, dtype=gram.dtype))
    assert moved[0, 1] > gram[0, 1]


def test_attention_alone_follows_the_logistic_law_to_first_order():
    gram, h = simplex_gram(6, 0.2), 1e-4
    m = gram.mean()
    rate = (hot_block(gram, h, 0.0, 1.0).mean() - m) / h
    assert float(rate) == pytest.approx(float(m * (1 - m)), rel=1e-3)


def test_a_block_is_that_of_a_wide_layer():
    """Against the layer itself, attention uniform, at width 4096."""
    g, d, inner, s = stream(0, "block"), 4096, 4096, 0.02
    x = normalise(torch.randn(4, d, generator=g, dtype=torch.float64) + 0.5) * d**0.5
    draw = lambda rows, columns: s * torch.randn(rows, columns, generator=g, dtype=torch.float64)  # noqa: E731
    after = x + x.mean(dim=0) @ draw(d, d) @ draw(d, d)
    after = normalise(after) * d**0.5
    after = after + torch.nn.functional.gelu(after @ draw(d, inner)) @ draw(inner, d)
    expected = hot_block(overlaps(normalise(x)), (s * s * d) ** 2, s * s * inner, s * s * d)
    assert torch.allclose(overlaps(normalise(after)), expected, atol=0.05)
    assert not torch.allclose(overlaps(normalise(x)), expected, atol=0.1), "the layer does something"


def test_the_course_is_predicted_from_the_spread_of_the_weights():
    """Value and output of attention multiply: at spread s and width d their variances are s^2 d each."""
    d, inner, s = 64, 128, 0.05
    states = torch.randn(1, 5, d, generator=stream(0, "states"), dtype=torch.float64) + 0.5
    gram, course = overlaps(normalise(states[0])), []
    for _ in range(3):
        course.append((gram.sum() - gram.trace()).item() / 20)
        gram = hot_block(gram, (s * s * d) * (s * s * d), s * s * inner, s * s * d)
    assert real.predicted(states, 2, s, inner) == pytest.approx(course, rel=1e-12)


def test_one_shared_layer_needs_fewer_passes_and_another_power():
    table = run_experiment(OneLayer.at("ci"), seed=1, device="cpu")
    measure = {claim.id: claim for claim in real.CLAIMS}["HT-24.a"]
    assert abs(measure.measure(table).value + 1) < 0.3
    assert abs(measure.control(table).value + 2) < 0.3


def table(rises: dict[tuple[str, int], float]) -> pd.DataFrame:
    """Rows of ``Reactions`` in which each arm rises by what is said, give or take a little."""
    cells = [
        {"weights": weights, "draw": draw, "replicate": k, "layer": layer, "m": 0.2 + layer * (rise + 0.001 * k)}
        for (weights, draw), rise in rises.items()
        for k in range(8)
        for layer in (0, 1)
    ]
    return pd.DataFrame(cells)


def test_rises_are_compared_reaction_by_reaction():
    rises = {("trained", 0): 0.0, ("shared", 0): 0.2, ("shared", 1): 0.4, ("fresh", 0): 0.1, ("fresh", 1): 0.1}
    rises |= {("grafted", 0): 0.3, ("grafted", 1): 0.3}
    by_id = {claim.id: claim for claim in real.CLAIMS}
    assert by_id["HT-24.c"].measure(table(rises)).value == pytest.approx(-0.3)
    assert by_id["HT-24.d"].measure(table(rises)).value == pytest.approx(0.2)
    assert by_id["HT-24.d"].control(table(rises)).value == pytest.approx(0.0)
    gone = table(rises)
    gone.loc[0, "m"] = np.nan
    with pytest.raises(ValueError, match="no number"):
        by_id["HT-24.c"].measure(gone)


@needs("rxnmapper")
def test_reactions_run_and_a_trained_layer_that_is_not_loaded_is_seen(monkeypatch):
    small = Reactions.at("tiny")
    monkeypatch.setattr(
        real.texts, "reactions", lambda: ["CC(C)S.Fc1ncccc1F>>CC(C)Sc1ncccc1F", "COC(=O)CCBr>>COC(=O)CC"]
    )
    got = {
        arm["weights"]: run_condition(small, arm, 0, "cpu").query("layer == 12")["m"].mean()
        for arm in small.conditions()
    }
    assert got["shared"] > got["fresh"] + 0.05
    assert got["grafted"] > got["trained"] + 0.05
    load = real.models.load
    monkeypatch.setattr(real.models, "load", lambda name: real.models.fresh(load(name), stream(5, "not loaded")))
    wrong = run_condition(small, {"weights": "trained", "draw": 0}, 0, "cpu").query("layer == 12")["m"].mean()
    assert wrong > got["trained"] + 0.05


@needs("minilm", "austen")
def test_passages_come_from_all_novels_and_a_model_of_ones_own_may_read_them():
    assert len({*real.passages(12)}) == 12
    table = run_experiment(Sentences.at("tiny"), seed=0, device="cpu")
    fresh = table[table["weights"] == "fresh"]
    assert (fresh["m"] - fresh["m_theory"]).abs().max() < 0.06
    figure = real.courses(made(Reactions), table.assign(tier="ci", recorded=False))
    assert "MiniLM on novels, trained" in figure.get_label()


def made(experiment) -> pd.DataFrame:
    rises = {("trained", 0): 0.0, ("shared", 0): 0.2, ("fresh", 0): 0.1}
    return table(rises).assign(tier="ci", recorded=False, m_theory=0.3)


def test_figures_say_in_words_what_they_show(rows):
    label = real.courses(made(Reactions), made(Sentences)).get_label()
    assert "ALBERT on reactions, untrained, one layer: from 0.20 to 0.40" in label
    drawn = rows[OneLayer].assign(tier="ci", recorded=False)
    assert "fresh" in real.passes(drawn).get_label()
