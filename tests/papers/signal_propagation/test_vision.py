"""Networks of the shape of a vision transformer: SP-13 and SP-15, their rows and their measures."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from derived.papers.signal_propagation.model.transformer import Sigmas
from derived.papers.signal_propagation.vision import ManyTokens, ratio_to_author


def test_doubled_attention_weights_of_sp13(by_hand):
    """196 tokens, 128 blocks from (0.27, 0.11): 11.4 at finite n, 2.1 for many tokens; the columns are these."""
    small = ManyTokens(width=24, num_heads=2, depth=128, n=12, inits=1, probes=1)
    rows = small.run({"init": 0}, seed=0, device=torch.device("cpu"), dtype=torch.float32)
    sigmas = Sigmas().scaled(attn_mult=2.0)
    arguments = {"a": sigmas.a, "s": sigmas.s, "depth": 128}
    many, limit, few = (by_hand("layernorm", 1.0, 0.27, 0.11, n=n, **arguments)["J"][0] for n in (196, math.inf, 12))
    np.testing.assert_allclose((many, limit), (11.4, 2.1), rtol=0.03)
    np.testing.assert_allclose(rows["J_infinite"].iloc[0], limit, rtol=1e-11)
    np.testing.assert_allclose(rows["J_theory"].iloc[0], few, rtol=1e-11)


def test_against_author_is_the_largest_disagreement():
    rows = [("erf", 0.5, 3.078), ("erf", 1.9, 0.9 * 51.30), ("layernorm", 1.0, 6.003), ("erf", 0.123, 1e9)]
    table = pd.DataFrame(rows * 3, columns=["norm", "alpha", "J"]).assign(b=0)
    assert ratio_to_author(table).value == pytest.approx(0.9)
