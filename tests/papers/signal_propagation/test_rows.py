"""What all experiments, measures and figures of the chapter share: columns, finite values, alt texts."""

import numpy as np
import pytest

from derived.lab.real import pinned
from derived.papers.signal_propagation import claims, networks, regimes
from derived.papers.signal_propagation.networks import Networks, SharpAttention
from derived.papers.signal_propagation.real import Clothes
from derived.papers.signal_propagation.regimes import Crossing, Regimes, Window, with_laws
from derived.papers.signal_propagation.trained import Trained
from derived.papers.signal_propagation.vision import ManyTokens, VisionTransformer

EXPERIMENTS = tuple(one for one in claims.EXPERIMENTS if not pinned.missing(one.needs))
MEASURED = {"b", "replicate", "q", "p", "J", "K", "pooled", "q_theory", "p_theory", "J_theory", "K_theory"}
COLUMNS = {
    Clothes: {"norm", "alpha", "start", "replicate", "picture", "b", "q", "p", "norms", "J", "J_theory", "J_null"},
    SharpAttention: {"norm", "n", "sigma", "heads", "replicate", "J", "J_frozen", "J_code", "J_first", "J_softmax"},
    Crossing: {"norm", "alpha", "b", "log_J"},
    Regimes: {"norm", "alpha", "attn_mult", "tokens", "b", "q", "rho", "log_J", "log_difference"},
    Window: {"alpha", "b", "q", "p", "log_J", "low", "high", "crossover", "predicted"},
    Networks: MEASURED | {"norm", "heads", "J_without_K", "J_without_attention", "q_apart", "pooled_theory"},
    ManyTokens: MEASURED | {"init", "J_infinite", "J_without_K"},
    Trained: {"depth", "arm", "stage", "rate", "replicate", "alpha", "growth", "loss", "test_loss"},
    VisionTransformer: MEASURED | {"norm", "alpha", "init"},
}


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.__name__)
def test_rows_have_the_promised_columns_and_no_failure(rows, experiment):
    table = rows[experiment]
    assert COLUMNS[experiment] <= set(table.columns)
    assert np.isfinite(table.select_dtypes("number").to_numpy()).all()


def test_figures_say_in_words_what_they_show(rows, follows):
    for draw in (regimes.two_laws, regimes.order_of_limits):
        follows(draw, with_laws(rows[Regimes]), "log_J")
    follows(regimes.growth, rows[Crossing], "log_J")
    follows(networks.softmax, rows[SharpAttention], "J", "J_softmax", "J_frozen")
