"""What all experiments, measures and figures of the chapter share: columns, finite values, alt texts."""

import numpy as np
import pytest

from derived.lab.real import pinned
from derived.papers.signal_propagation import claims, networks, regimes
from derived.papers.signal_propagation.model.asymptotics import vit_variances
from derived.papers.signal_propagation.networks import Networks, SharpAttention
from derived.papers.signal_propagation.real import Clothes
from derived.papers.signal_propagation.regimes import Crossing, Regimes, Window, last_exponent, with_laws
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
    assert "failure" not in table.columns
    assert COLUMNS[experiment] <= set(table.columns)
    assert set(experiment.deterministic) <= set(table.columns)
    assert np.isfinite(table.select_dtypes("number").to_numpy()).all()


def test_claims_on_recurrences_give_what_the_recurrences_by_hand_give(rows, by_hand):
    """At 400 blocks no law is reached, but the last local exponents and overlaps are those of plain loops."""
    found = {
        claim.id: claim.measure(rows[claim.experiment]).value
        for claim in claims.CLAIMS
        if claim.experiment in (Regimes, Window)
    }
    before, last = np.unique(rows[Regimes]["b"])[-2:]

    def exponent(mult: float, n: float) -> float:
        sizes = dict(zip("as", vit_variances(mult), strict=True)) | {"n": n}
        ends = [by_hand("layernorm", 1.0, 1.0, 0.2, depth=int(b), **sizes)["J"][0] for b in (before, last)]
        return float(np.diff(np.log(ends)).item() / np.log(last / before))

    for mult in (1.0, 0.0):
        assert last_exponent(mult)(rows[Regimes]).value == pytest.approx(exponent(mult, np.inf), rel=1e-9)
    assert found["SP-12.b"] == pytest.approx(exponent(2.0, 4), rel=1e-9)


def test_figures_say_in_words_what_they_show(rows, follows):
    for draw in (regimes.two_laws, regimes.order_of_limits):
        follows(draw, with_laws(rows[Regimes]), "log_J")
    follows(regimes.growth, rows[Crossing], "log_J")
    follows(networks.softmax, rows[SharpAttention], "J", "J_softmax", "J_frozen")
