"""R8: queries on which the layer was not made."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from least_squares_problems import make_problem, problems, token_loop

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.ols_attention import layer as layer_topic
from derived.papers.ols_attention.data.problems import random_rotation
from derived.papers.ols_attention.model import mechanism, theory


@given(problems(max_kappa=100.0), st.integers(1, 9))
def test_r8_held_out_queries(problem, num_queries):
    """R8: (a) X~ Sigma^+ Sigma~ B, (b) and (c) X~ B for any query; against LAPACK's prediction and the token loop.

    Bears `ols-held-out`.
    """
    X, Y = problem.X, problem.Y
    Xq = problem.normal(num_queries, X.shape[1])
    layer = mechanism.OLSTransformer.from_data(X, Y)
    weights = mechanism.Weights(layer.W_Q, layer.W_K, layer.W_V, layer.W_FFN, layer.W_p)
    prediction = Xq @ problem.coefficients
    lapack = Xq @ torch.from_numpy(np.linalg.lstsq(X.numpy(), Y.numpy(), rcond=1e-10)[0])
    tolerance = problem.tolerance(Xq)
    for answer in (layer(Xq, context=X), mechanism.in_context_ols(Xq, X, Y), token_loop(Xq, X, weights), lapack):
        assert (answer - prediction).norm() <= tolerance
    tolerance = problem.tolerance(Xq, self_attention=True)
    inverse = len(X) * (problem.V / problem.s**2) @ problem.V.T
    expected = Xq @ inverse @ theory.second_moment(Xq) @ problem.coefficients
    for answer in (layer(Xq), token_loop(Xq, Xq, weights)):
        assert (answer - expected).norm() <= tolerance
    single = Xq[:1]
    leverage = (single @ inverse @ single.T).squeeze()
    assert (layer(single) - leverage * (single @ problem.coefficients)).norm() <= problem.tolerance(
        single, self_attention=True
    )


def test_r8_self_attention_is_right_only_where_the_moments_agree():
    """R8 (a): the OLS prediction iff Sigma~ B = Sigma B; a scale c multiplies it by c^2 in every direction.

    Bears `ols-held-out`.
    """
    problem = make_problem(30, 3, 1, 3, 3.0, seed=6)
    layer = mechanism.OLSTransformer.from_data(problem.X, problem.Y)
    for c in (0.25, 1.0, 4.0):
        Xq = c * problem.X
        expected = c**2 * (Xq @ problem.coefficients)
        assert (layer(Xq) - expected).norm() <= problem.tolerance(Xq, self_attention=True)
    R = random_rotation(30, generator=stream(6, "rotate"))
    same_moment = R @ problem.X  # other tokens, the same second moment
    assert (layer(same_moment) - same_moment @ problem.coefficients).norm() <= problem.tolerance(
        same_moment, self_attention=True
    )
    # a moment that agrees with Sigma on B alone is enough: stretch the whitened tokens across b = Sigma^{1/2} B
    b = problem.C / problem.C.norm()
    stretched = problem.U @ (torch.eye(3, dtype=torch.float64) + 4 * (torch.eye(3, dtype=torch.float64) - b @ b.T))
    partial = (stretched * problem.s) @ problem.V.T
    assert (theory.second_moment(partial) - theory.second_moment(problem.X)).norm() > 1
    assert (layer(partial) - partial @ problem.coefficients).norm() <= problem.tolerance(partial, self_attention=True)


def test_a_quarter_turn_swaps_the_widest_axis_with_the_narrowest():
    """OLS-8: in two dimensions of condition number kappa, self-attention then multiplies the coefficients by kappa and
    1/kappa. Half of all B have |b_1| > |b_2|, so that the median error is that of equal ones; kappa^2 is rejected."""
    kappa = 4.0
    turned = layer_topic.Shift(amounts=(1.0,), angles=(1.0,), n=4000, p=2, kappa=kappa, replicates=400)
    rows = run_experiment(turned, seed=0, device="cpu").query("shift == 'rotation' and method == 'self'")

    def median(k: float) -> float:
        return ((k * (k - 1) ** 2 + (1 / k - 1) ** 2) / (k + 1)) ** 0.5

    found = rows["error"].median()
    assert found == pytest.approx(median(kappa), rel=0.05)
    assert found != pytest.approx(median(kappa**2), rel=0.5)
    assert rows["error"].between(0.95 * (1 - 1 / kappa), 1.05 * 1.1 * (kappa - 1)).all()


@given(problems(), st.floats(-3.0, 3.0))
def test_no_weights_serve_two_data_sets(problem, c):
    """`ols-quantifiers`, both parts: the layer has no argument Y, and f(cX) = c^3 f(X) for every real c; the fit of
    (cX, Y) is a projection, computed here by Gram-Schmidt on the columns of cX, and moves for no c but 0."""
    layer = mechanism.OLSTransformer.from_data(problem.X, problem.Y)
    same_tokens = layer(problem.X)
    assert torch.equal(same_tokens, layer(problem.X))  # no second set of labels could enter
    other = problem.fit + problem.U @ torch.ones_like(problem.C)
    assert (same_tokens - other).norm() > 0.5
    tolerance = problem.tolerance(c * problem.X, self_attention=True) if c else 1e-12
    assert (layer(c * problem.X) - c**3 * problem.fit).norm() <= tolerance + problem.tolerance()
