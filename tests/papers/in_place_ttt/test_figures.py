"""Figures of trained models, of the forms and of the clock: tables with known answers, and what they say in words."""

import itertools

import numpy as np
import pandas as pd
import pytest

from derived.papers.in_place_ttt import clock, trained


def models(values: dict, **facts) -> pd.DataFrame:
    """Four models of each arm and rate; ``values``: (arm, rate) -> (valid, test)."""
    rows = [
        {"arm": arm, "rate": rate, "replicate": r, "valid": valid + 0.01 * r, "test": test + 0.01 * r * (arm != "b")}
        for (arm, rate), (valid, test) in values.items()
        for r in range(4)
    ]
    return pd.DataFrame(rows).assign(tier="cpu", recorded=True, **facts)


ARMS = {("a", 0.1): (0.9, 0.2), ("a", 0.2): (0.5, 0.9), ("b", 0.1): (0.1, 0.3), ("b", 0.2): (0.4, 0.6)}


def test_validation_chooses_the_rate_not_the_test():
    chosen = trained.at_chosen_rate(models(ARMS), ["arm"], "max").groupby("arm")["rate"].unique()
    assert [list(each) for each in chosen] == [[0.1], [0.2]]
    chosen = trained.at_chosen_rate(models(ARMS), ["arm"], "min").groupby("arm")["rate"].unique()
    assert [list(each) for each in chosen] == [[0.2], [0.1]]


def test_a_rate_at_which_a_model_diverged_is_none():
    rows = models(ARMS)
    rows.loc[(rows["arm"] == "a") & (rows["rate"] == 0.1) & (rows["replicate"] == 2), "valid"] = np.nan
    assert set(trained.at_chosen_rate(rows, ["arm"], "max").query("arm == 'a'")["rate"]) == {0.2}


def test_arms_are_compared_model_by_model():
    """Student's interval of four paired differences 0.4, 0.39, 0.38, 0.37, by hand."""
    table = trained.compared(models(ARMS), ["arm"], "test", "max", against="a")
    assert table.loc["b", "difference"] == pytest.approx(0.6 - 0.2 - 0.015)
    error = np.std([0.0, 0.01, 0.02, 0.03], ddof=1) / 2
    assert table.loc["b", "its ± 95 %"] == pytest.approx(3.18245 * error, rel=1e-5)
    assert table.loc["b", "its ± 99.9 %"] == pytest.approx(12.92398 * error, rel=1e-5)
    assert table.loc["b", "± 95 %"] == pytest.approx(0, abs=1e-12)
    wide = models(ARMS, depth=1)
    named = trained.compared(wide, ["depth", "arm"], "test", "max", (1, "a"), lambda *arm: f"arm {arm[1]}")
    assert named.loc["arm b", "difference"] == table.loc["b", "difference"]


def test_figures_of_trained_models_say_in_words_what_they_show():
    arms = [(1, 8, "both"), (1, 8, "proj"), (1, 1, "past"), (2, 8, "conv")]
    rows = pd.concat(
        models({(arm, 0.1): (0.5, 0.25)}, depth=depth, window=window, step=step, recall=0.1)
        for (depth, window, arm), step in itertools.product(arms, (5, 10))
    )
    label = trained.recall_curves(rows, 0.2).get_label()
    assert "two blocks, taps 0.27" in label
    assert "one block, keys of the token alone, past taps only 0.27" in label
    assert "1 deep, projection only 0.10" in trained.learning(rows).get_label()
    losses = {("ttt", 0.1): (1.0, 1.0), ("window", 0.1): (1.5, 1.5)}
    rows = pd.concat(
        models(losses, context=context, steps=steps, loss=2.0 - context * steps / 100, floor=0.5)
        for context, steps in itertools.product((0, 5), (2, 10))
    )
    label = trained.documents(rows).get_label()
    assert "after 2 steps In-Place TTT 1.900, window 1.900; after 10 steps In-Place TTT 1.500" in label
    starts = {("zero", 0.1): (1.0, 1.0), ("static", 0.1): (1.1, 1.1), ("random", 0.1): (2.0, 2.0)}
    starts |= {("placebo", 0.1): (1.1, 1.1)}
    rows = models(starts)
    label = trained.warm(rows.assign(start=rows["arm"], first=1.25, base=1.25)).get_label()
    assert "trained model, 1.250: as it was +0.000, then" in label
    assert "another text's writes +0.000, then -0.135; released start +0.000, then -0.235" in label
    chunks = pd.concat(models({("a", 0.1): (1.0, 1.0 - 0.1 * (chunk == 8))}, chunk=chunk) for chunk in (2, 8, 32))
    layers = pd.concat(models({("a", 0.1): (1.0, 1.505 - 0.1 * count)}, memories=count) for count in (0, 1, 4))
    figure = trained.sizes(chunks, layers)
    assert "chunk: 1.015 at 2, 0.915 at 8, 1.015 at 32; by memories: 1.520 at 0" in figure.get_label()
    titles = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert titles == ["in the mean, chunks of 8 tokens do best", "one block that writes: 1.42, 4 blocks: 1.12"]


def test_the_figure_of_the_clock_has_medians_per_token_and_the_roofline():
    """Ten flops a token at 10 million a second are a microsecond, and ten bytes at 5 million are two, which bind; of
    the lean form's fifty flops, five microseconds, the flops do."""
    rows = pd.DataFrame(
        [
            {"n": n, "form": form, "repeat": r, "seconds": n * 1e-6 * (3 + r) * (2 if form == "lean" else 1)}
            for n in (10, 100)
            for form in ("static", "lean")
            for r in range(3)
        ]
    )
    flops = rows["form"].map({"static": 10.0, "lean": 50.0}) * rows["n"]
    rows = rows.assign(flops=flops, bytes=10 * rows["n"], peak=12_000_000, pace=1e7, flow=5e6, batch=1)
    rows = pd.concat([rows, rows.assign(batch=4, seconds=99.0)]).assign(recorded=True, tier="cpu")
    label = clock.layer_time(rows).get_label()
    assert "no memory 4 microseconds per token, 2 times its roofline, and 12 MB at 100" in label
    assert "memory, lean 8 microseconds per token, 1.6 times its roofline" in label
