"""Networks fed with generated images: rows and measure of SP-16."""

import dataclasses
import functools

import numpy as np
import pandas as pd
import pytest
import torch

from derived.papers.signal_propagation import images
from derived.papers.signal_propagation.images import CLAIMS, GeneratedImages
from derived.papers.signal_propagation.model.asymptotics import vit_variances

EXPERIMENTS = (GeneratedImages,)


def test_images_start_their_recurrence_from_the_measured_block(rows, by_hand):
    """J_theory of an image: from its own (q, p), over the patches as tokens, 1 at the output."""
    experiment = GeneratedImages.at("tiny")
    table = rows[GeneratedImages].query("norm == 'erf' and init == 0 and replicate == 1")
    table = table[table["alpha"] == table["alpha"].min()].sort_values("b")
    a, s = vit_variances()
    sizes = {"n": (experiment.size // experiment.patch) ** 2, "depth": experiment.depth - experiment.start}
    q, p, alpha = (table[name].iloc[0] for name in ("q", "p", "alpha"))
    np.testing.assert_allclose(table["J_theory"], by_hand("erf", alpha, q, p, a=a, s=s, **sizes)["J"], rtol=1e-12)
    assert table["b"].tolist() == list(range(experiment.start, experiment.depth + 1))


def test_images_fold_error_counts_the_last_two_thirds_below_the_output():
    blocks = np.arange(8, 21)
    factor = np.where(blocks <= 12, 5.0, np.where(blocks < 20, 1.1, 7.0))  # early, late, output
    tables = [
        pd.DataFrame({"b": blocks, "J": factor ** (1 - 2 * (init % 2)), "J_theory": 1.0}).assign(init=init)
        for init in range(4)
    ]
    estimate = CLAIMS[0].measure(pd.concat(tables).assign(norm="erf", alpha=0.5))
    assert estimate.value == pytest.approx(1.1)  # too large and too small do not cancel
    assert estimate.n == 4


def test_images_are_taken_in_parts_and_each_keeps_its_own_probe(monkeypatch):
    size = dataclasses.replace(GeneratedImages.at("tiny"), images=5, inits=1)
    run = functools.partial(size.run, size.conditions()[0], seed=0, device=torch.device("cpu"), dtype=torch.float64)
    whole = run()
    monkeypatch.setattr(images, "AT_ONCE", 2)
    np.testing.assert_allclose(run()["J"], whole["J"], rtol=1e-9)
    assert whole.groupby("replicate")["J"].first().nunique() == 5
