"""R10: flows, end points and identifiability against training."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.ols_attention import training
from derived.papers.ols_attention.data.problems import (
    paper_problem,
    random_regression,
)
from derived.papers.ols_attention.model import reachability
from derived.papers.ols_attention.model.mechanism import OLSTransformer, linear_attention, tied_weights, whitening
from derived.papers.ols_attention.model.theory import (
    ols_coefficients,
    rounding_bound,
    second_moment,
)
from derived.papers.ols_attention.training import (
    Courses,
    Reachability,
    TrainedEndPoint,
    structure_gap,
    train_matrix,
    train_scalar,
)

EPS = torch.finfo(torch.float64).eps
numbers = st.floats(0.3, 2.0)
signed = st.one_of(st.floats(-2.0, -0.1), st.floats(0.1, 2.0))


def scalar_loss(l: Tensor, P: Tensor, s: float, beta: float, read_out: str) -> Tensor:
    """Excess mean squared error written from the layer x l^3 s^2 P, independently of the package."""
    read = {"frozen": s * beta, "recomputed": l * s**2 * beta, "trained": P}[read_out]
    return s**2 * (l**3 * s**2 * read - beta) ** 2


@given(signed, signed, numbers, signed, st.sampled_from(reachability.READ_OUTS))
def test_r10_the_flow_is_minus_the_gradient(l, P, s, beta, read_out):
    """`ols-flows`, R10: the stated flows against autograd, and the prediction's slope against the layer on tokens."""
    lt, Pt = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (l, P))
    loss = scalar_loss(lt, Pt, s, beta, read_out)
    gradient = torch.autograd.grad(loss, (lt, Pt), allow_unused=True)
    expected = [0.0 if g is None else -float(g) for g in gradient]
    slope = reachability.prediction_slope(l, P, s, beta, read_out)
    scale = 100 * EPS * (1 + abs(slope) + abs(beta)) * 10 * (1 + s**6) * (1 + abs(l) ** 3) * (1 + abs(beta) + abs(P))
    np.testing.assert_allclose(reachability.scalar_flow(l, P, s, beta, read_out), expected, rtol=0, atol=scale)


@given(signed, signed, numbers, signed)
def test_r10_training_both_conserves_l2_minus_3P2(l, P, s, beta):
    """`ols-flows`, R10: d(l^2 - 3 P^2)/dt = 2 l dl/dt - 6 P dP/dt = 0 along the flow."""
    dl, dP = reachability.scalar_flow(l, P, s, beta, "trained")
    assert abs(2 * l * dl - 6 * P * dP) <= 20 * EPS * (abs(2 * l * dl) + abs(6 * P * dP))
    assert reachability.conserved_quantity(2.0, 1.0) == 1.0


@given(signed, signed, numbers, signed)
def test_r10_end_point_lies_on_both_curves(l0, P0, s, beta):
    """R10: the end point conserves l^2 - 3 P^2 and has zero loss, or stalls at l = 0 where the sign rule says so.

    Bears `ols-end-point`.
    """
    l, P = reachability.predicted_end_point(l0, P0, s, beta)
    c = reachability.conserved_quantity(l0, P0)
    if l0 * P0 * beta > 0 or c > 0:
        assert np.sign(l) == np.sign(l0)
        np.testing.assert_allclose(l**3 * s**2 * P, beta, rtol=20 * EPS)
        # v solves a quartic whose relative derivative is at least 1, so v is good to a few eps of its largest term
        assert abs(reachability.conserved_quantity(l, P) - c) <= 400 * EPS * (l**2 + 3 * P**2 + abs(c))
        quartic = np.roots([1, -c, 0, 0, -3 * beta**2 / s**4])
        real = quartic[(abs(quartic.imag) < 1e-9) & (quartic.real > 0)].real
        assert len(real) == 1
        np.testing.assert_allclose(l**2, real[0], rtol=1e-9)  # numpy.roots is a companion-matrix eigenvalue
    else:
        assert l == 0
        assert np.sign(P) == np.sign(P0)
        np.testing.assert_allclose(3 * P**2, -c, rtol=4 * EPS, atol=0)


@pytest.mark.parametrize("beta", [1e-40, 1e40])
def test_r10_end_point_is_found_from_above_however_large_the_task(beta):
    """Newton's start has the size of the root: from one that has not, a hundred steps do not get down to it."""
    l, P = reachability.predicted_end_point(0.5, 0.5, 1.0, beta)
    np.testing.assert_allclose(l**3 * P, beta, rtol=20 * EPS)
    np.testing.assert_allclose(l**2 - 3 * P**2, -0.5, atol=400 * EPS * l**2)


def paper_batch(seeds: int, seed: int = 0):
    data = paper_problem(500, batch=(seeds,), generator=stream(seed, "paper"))
    x, y = data.X.squeeze(-1), data.Y.squeeze(-1)
    return x, y, x.square().mean(dim=-1).sqrt(), (x * y).sum(dim=-1) / x.square().sum(dim=-1)


@pytest.mark.parametrize(
    ("read_out", "l0", "target"),
    [("frozen", 0.1, 1), ("frozen", 1.5, 1), ("recomputed", 0.5, 1), ("recomputed", -0.5, -1), ("frozen", -0.5, 0)],
)
def test_r10_which_starts_reach_the_whitening(read_out, l0, target):
    """R10, OLS-9: within 1000 epochs of Adam L = 1/s from l0 > 0; -1/s or a stall at the saddle 0 from l0 < 0.

    Bears `ols-flows`.
    """
    x, y, s, _ = paper_batch(20)
    run = train_scalar(x, y, torch.full((20,), l0, dtype=torch.float64), read_out=read_out)
    assert (run.l[-1] - target / s).abs().max() < (1e-3 if target else 0.05)


@pytest.mark.parametrize("read_out", reachability.READ_OUTS)
def test_r10_scalar_training_is_matrix_training_of_the_layer(read_out):
    """R10: the scalar recursion in s and beta is the training of the layer on its tokens, for both optimisers."""
    x, y, s, beta = paper_batch(2)
    l0 = torch.tensor([0.5, -0.7], dtype=torch.float64)
    P0 = torch.tensor([0.4, 0.3], dtype=torch.float64) if read_out == "trained" else None
    matrix_P0 = s * beta if read_out == "frozen" else P0
    for optimizer, lr in (("adam", 1e-2), ("gd", 1e-3)):
        scalar = train_scalar(x, y, l0, P0, read_out=read_out, optimizer=optimizer, lr=lr, epochs=30)
        matrix = train_matrix(
            x[..., None],
            y[..., None],
            l0[:, None, None],
            None if matrix_P0 is None else matrix_P0[:, None, None],
            read_out=read_out,
            optimizer=optimizer,
            lr=lr,
            epochs=30,
        )
        # each of the 30 steps rounds sums over 500 tokens and stretches earlier errors by less than a factor 2
        np.testing.assert_allclose(scalar.l[-1], matrix.L[:, 0, 0], rtol=2**10 * 500 * EPS)
        np.testing.assert_allclose(scalar.P[-1], matrix.P[:, 0, 0], rtol=2**10 * 500 * EPS)
        np.testing.assert_allclose(scalar.loss, matrix.loss, rtol=2**10 * 500 * EPS)


@pytest.mark.parametrize("read_out", reachability.READ_OUTS)
@pytest.mark.parametrize("n", [1, 4, 40])
def test_r10_a_few_tokens_stand_for_all_of_them(n, read_out):
    """R10: `train_matrix` keeps moments alone; its loss and its gradient are those of the layer on all n tokens."""
    data = random_regression(40, 3, 2, kappa=2.0, generator=stream(14, "few tokens", n))
    X, Y = data.X[:n], data.Y[:n]
    L = (0.7 * torch.eye(3, dtype=torch.float64) + 0.1).requires_grad_()
    P = {"trained": torch.ones(3, 2, dtype=torch.float64), "frozen": torch.ones(3, 2, dtype=torch.float64)}
    P0 = P.get(read_out)
    run = train_matrix(X, Y, L.detach(), P0, read_out=read_out, optimizer="gd", lr=1e-3, epochs=1)
    tokens = X @ L
    read = tokens.mT @ Y / n if P0 is None else P0
    loss = (linear_attention(tokens, tokens, tokens) @ read - Y).square().sum() / n
    loss.backward()
    bound = 2**10 * (n + 5) * EPS  # of sums over n tokens, of their triangular factor, and of products of six matrices
    assert abs(run.loss[0] - loss.detach()) <= bound * loss.detach()
    assert ((run.L - L.detach()) / -1e-3 - L.grad).norm() <= bound * (L.grad.norm() + L.detach().norm() / 1e-3)


def test_r10_a_frozen_read_out_belongs_to_the_whitening():
    """R10: without P0 the frozen P is that of L = whitening(X), so L = whitening(X) is a fixed point."""
    data = random_regression(30, 3, 2, generator=stream(20, "frozen"))
    L = whitening(data.X)
    run = train_matrix(data.X, data.Y, L, read_out="frozen", optimizer="gd", lr=1e-3, epochs=5)
    assert (run.L - L).norm() <= 5 * rounding_bound(data.X) * L.norm()
    assert structure_gap(data.X, run.L) <= rounding_bound(data.X)


@pytest.mark.parametrize(("p", "m"), [(1, 1), (3, 1), (3, 2), (3, 3), (2, 5)])
def test_r10_the_structure_is_identified_iff_the_rank_is_p(p, m):
    """R10: zero loss in every case; L L^T = Sigma^{-1} iff rank B = p.

    Bears `ols-identify`.
    """
    data = random_regression(60, p, m, generator=stream(12, p, m))
    B = ols_coefficients(data.X, data.Y)
    start = 0.7 * torch.eye(p, dtype=torch.float64)
    run = train_matrix(data.X, data.Y, start, epochs=2500)
    least = (data.Y - data.X @ B).square().sum() / 60
    assert abs(run.loss[-1] - least) < 1e-9 * run.loss[0]
    gap = structure_gap(data.X, run.L)
    identified = int(torch.linalg.matrix_rank(B)) == p
    assert (gap < 1e-4) == identified == (m >= p)
    if not identified:
        assert gap > 0.05


@pytest.mark.parametrize("d", [1, 2, 5])
def test_r10_matrix_loss_is_the_excess_of_the_layer(d):
    """`ols-identify`, R10: the closed form against the mean squared error of the layer, for L of any width."""
    data = random_regression(30, 3, 2, generator=stream(14, d))
    L = torch.randn(3, d, generator=stream(14, "L", d), dtype=torch.float64)
    B = ols_coefficients(data.X, data.Y)
    layer = OLSTransformer(tied_weights(data.X, data.Y, L))
    excess = ((layer(data.X) - data.Y).square().sum() - (data.Y - data.X @ B).square().sum()) / 30
    gain = max(1.0, float(torch.linalg.matrix_norm(data.X @ L, 2)) ** 8 / 30**4)  # the loss is of degree 8 in L
    bound = 2 * float(rounding_bound(data.X)) * gain * float(data.Y.square().sum()) / 30
    values, vectors = torch.linalg.eigh(second_moment(data.X))
    root = (vectors * values.sqrt()) @ vectors.T
    T = root @ L @ L.T @ root
    closed = ((T @ T - torch.eye(3, dtype=torch.float64)) @ root @ B).square().sum()
    assert abs(closed - excess) <= bound


def test_the_courses_end_where_the_rows_of_the_end_points_say():
    """One replicate, every fifth epoch: the last of them, and what theory gives for it."""
    size, arm = {"epochs": 20, "replicates": 1}, {"read_out": "trained", "optimizer": "gd"}
    course, ends = (
        make(**size, starts=Courses.starts).run(arm, seed=0, device="cpu", dtype=torch.float64)
        for make in (Courses, Reachability)
    )
    assert sorted(course["epoch"].unique()) == [0, 5, 10, 15, 20]
    last = course[course["epoch"] == 20].set_index("l0")
    names = ["l", "P", "inverse_root", "s", "beta"]
    np.testing.assert_allclose(last[names], ends.set_index("l0").loc[last.index, names], rtol=1e-12)
    assert (course[course["epoch"] == 0].set_index("l0")["l"] == last.index).all()


def test_end_points_are_those_of_the_conserved_quantity_and_the_last_three_starts_stall():
    """`ols-end-point`, OLS-10.c on two data sets: l^2 - 3 P^2 stays, by which the first five starts end, the last three
    stall, and none ends by 1/s."""
    ends = TrainedEndPoint(n=200, lr=5e-3, epochs=800, replicates=2)
    rows = run_experiment(ends, seed=0, device="cpu")
    assert [*zip(rows["l0"], rows["P0"], strict=True)] == 2 * [*ends.starts]
    assert (rows["arrives"] == ([True] * 5 + [False] * 3) * 2).all()
    arrive, stall = rows[rows["arrives"]], rows[~rows["arrives"]]
    assert ((arrive["l"] - arrive["predicted"]).abs() < 0.02).all()
    assert (arrive["excess"] < 1e-3).all()
    assert (stall["predicted"] == 0).all()
    assert (stall["l"].abs() < 0.1 * stall["inverse_root"]).all()


def test_the_table_of_ends_counts_each_end_once():
    """OLS-9: two data sets a cell; what is neither 1/s, -1/s nor 0 is elsewhere, and a run that diverged, too."""
    rows = pd.DataFrame(
        {"optimizer": "gd", "read_out": "frozen", "l0": [1.0, 1.0, 2.0, 2.0], "inverse_root": 0.5, "s": 2.0}
        | {"l": [0.5, -0.5, np.inf, 0.01]}
    )
    table = training.ends(rows)
    assert table.loc[("descent", "frozen", 1.0)].tolist() == [0.5, 0.5, 0.0, 0.0]
    assert table.loc[("descent", "frozen", 2.0)].tolist() == [0.0, 0.0, 0.5, 0.5]
    assert training.start_by_end(rows).loc[("descent", "frozen"), "from 2"] == "0 50%, elsewhere 50%"
