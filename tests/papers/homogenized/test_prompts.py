"""The common noise: shared weights, measures and figures."""

import dataclasses

import pandas as pd
import torch

from derived.lab.rng import stream
from derived.papers.homogenized import prompts
from derived.papers.homogenized.prompts import PrivateNoise, Prompts, common_noise

EXPERIMENTS = (Prompts, PrivateNoise)


CHAIN = {"layer", "tau", "replicate"}


COLUMNS = {
    Prompts: {"n", "part", "replicate", "distance", "mean_0", "mean_3"},
    PrivateNoise: CHAIN | {"noise", "gamma0", "gamma"},
}


def test_rows_have_the_promised_columns_and_no_failure(rows, complete):
    complete(rows, COLUMNS)


def test_two_prompts_with_other_weights_do_not_come_together(monkeypatch):
    """The weights are the same for both prompts because their generator is; with fresh ones the distance stays."""
    small = dataclasses.replace(Prompts.at("tiny"), tokens=(64,), parts=1, replicates=6, d=6, tau=2.0)
    condition = small.conditions()[0]
    options = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float64}
    same = small.run(condition, **options)["distance"].mean()
    calls = []

    def fresh(seed, *names, **more):
        calls.append(names)
        return stream(seed, *names, len(calls), **more)

    monkeypatch.setattr(prompts, "stream", fresh)
    assert small.run(condition, **options)["distance"].mean() > 3 * same


def test_common_noise_is_the_variance_over_weights():
    g = stream(8, "weights")
    values = 0.5 * torch.randn(400, 2, generator=g, dtype=torch.float64).numpy()
    table = pd.DataFrame({"n": 8, "part": 0, "replicate": range(400), "mean_0": values[:, 0], "mean_1": values[:, 1]})
    found = common_noise(table)
    assert found.low < 0.5 < found.high
    assert found.n == 200


def test_figures_say_in_words_what_they_show(rows, follows):
    follows(prompts.prompts, rows[Prompts], "mean_0")
    follows(prompts.control, rows[PrivateNoise], "gamma")
