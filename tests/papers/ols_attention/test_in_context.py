"""The fixed layer of R4: Gamma* against sampling, fitting and training."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.ols_attention.data.problems import (
    random_rotation,
    random_tasks,
)
from derived.papers.ols_attention.in_context import (
    CLAIMS,
    context_moment,
    regress_linear_attention,
    train_linear_attention,
)
from derived.papers.ols_attention.model.theory import (
    linear_attention_risk,
    optimal_linear_attention,
)

EPS = torch.finfo(torch.float64).eps


def covariance(p: int, seed: int = 15) -> Tensor:
    Q = random_rotation(p, generator=stream(seed, "Lambda", p))
    A = (Q * torch.from_numpy(np.geomspace(0.5, 3.0, p))) @ Q.T
    return (A + A.T) / 2


@pytest.mark.parametrize(("p", "N", "noise"), [(1, 1, 0.0), (3, 2, 0.0), (5, 20, 0.0), (3, 10, 0.7)])
def test_r4_best_fixed_layer(p, N, noise):
    """R4: the gradient of the risk vanishes at Gamma*, the risk is the stated one, and any other Gamma is worse.

    Bears `ols-gamma`.
    """
    Lambda = covariance(p)
    Gamma, risk = optimal_linear_attention(Lambda, N, noise)
    variable = Gamma.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(linear_attention_risk(variable, Lambda, N, noise), variable)
    assert gradient.norm() <= 40 * p**2 * EPS * Lambda.norm() ** 2
    trace = Lambda.trace() - (Lambda @ Gamma @ Lambda).trace()
    assert abs(risk - trace) <= 40 * p**2 * EPS * Lambda.trace() * (1 + Lambda.norm())
    assert risk > 0
    other = Gamma + 0.1 * torch.randn(p, p, generator=stream(16, p), dtype=torch.float64)
    assert linear_attention_risk(other, Lambda, N, noise) > risk


@pytest.mark.parametrize(("p", "N", "noise"), [(1, 1, 0.0), (3, 2, 0.0), (4, 12, 0.5)])
def test_r4_risk_by_sampling(p, N, noise):
    """R4: the risk of Gamma* on random tasks within 4 standard errors; 1/N dropped from Lambda's term is rejected."""
    Lambda = covariance(p)
    Gamma, risk = optimal_linear_attention(Lambda, N, noise)
    tasks = random_tasks(Lambda, N, batch=(400_000 // N,), noise=noise, generator=stream(17, p, N))
    predicted = (tasks.x_query * (context_moment(tasks) @ Gamma.T)).sum(dim=-1)
    losses = (predicted - tasks.y_query).square()
    standard_error = losses.std() / len(losses) ** 0.5
    assert abs(losses.mean() - risk) < 4 * standard_error
    without = torch.linalg.inv(Lambda + (Lambda.trace() + noise**2) / N * torch.eye(p, dtype=torch.float64))
    wrong_risk = Lambda.trace() - (Lambda @ without @ Lambda).trace()
    assert abs(losses.mean() - wrong_risk) > 4 * standard_error


def test_r4_regression_on_random_tasks_finds_gamma_star():
    """R4, OLS-11: least squares in the p^2 unknowns of Gamma comes within 3 % of the optimal risk; OLS has none."""
    Lambda = covariance(4)
    Gamma, risk = optimal_linear_attention(Lambda, 20)
    fitted = regress_linear_attention(random_tasks(Lambda, 20, batch=(2, 20_000), generator=stream(18, "tasks")))
    assert fitted.shape == (2, 4, 4)
    excess = linear_attention_risk(fitted, Lambda, 20) / risk - 1
    assert (excess >= 0).all()
    assert (excess < 0.03).all()
    assert (torch.linalg.matrix_norm(fitted - Gamma) < 0.1 * torch.linalg.matrix_norm(Gamma)).all()
    tasks = random_tasks(Lambda, 20, batch=(50,), generator=stream(18, "ols"))
    least = torch.linalg.lstsq(tasks.X, tasks.y[..., None]).solution
    predicted = (tasks.x_query[..., None, :] @ least).squeeze(-1).squeeze(-1)
    assert (predicted - tasks.y_query).square().mean() < 1e-20  # the risk of least squares, N >= p, no noise


def test_r4_regression_recovers_an_asymmetric_gamma():
    """If the query labels are x~^T G (1/N) sum_i x_i y_i with G not symmetric, the regression returns G itself."""
    G = torch.tensor([[1.0, 2.0], [-0.5, 3.0]], dtype=torch.float64)
    tasks = random_tasks(covariance(2), 3, batch=(40,), generator=stream(40, "G"))
    labels = (tasks.x_query * (context_moment(tasks) @ G.T)).sum(dim=-1)
    assert (regress_linear_attention(tasks._replace(y_query=labels)) - G).norm() < 1e-10


def test_r4_training_on_random_tasks_converges_to_gamma_star():
    """R4, OLS-12 small: three runs of Adam on the full token layer approach the optimal risk from above."""
    Lambda = torch.eye(3, dtype=torch.float64)
    risk = optimal_linear_attention(Lambda, 10).risk
    run = train_linear_attention(
        Lambda, 10, steps=2500, lr=2e-2, num_tasks=32, batch=(3,), generator=stream(19, "runs")
    )
    ratio = linear_attention_risk(run.Gamma, Lambda, 10) / risk
    assert ((ratio >= 1) & (ratio < 1.03)).all()
    assert (run.rest < 0.15).all()
    assert run.loss.shape == (3, 2500)
    assert (run.loss[:, -250:].mean(dim=-1) < run.loss[:, :250].mean(dim=-1)).all()


def test_r4_the_other_blocks_of_the_weights_never_help():
    """`ols-gamma`, first half: w -> -w keeps the parts with x x^T and y^2: they only add their square."""
    p, N = 3, 4
    tasks = random_tasks(covariance(p), N, batch=(50,), generator=stream(41, "blocks"))
    g = stream(41, "weights")
    v, M = (torch.randn(*shape, generator=g, dtype=torch.float64) for shape in ((p + 1,), (p + 1, p)))

    def answer(y: Tensor) -> Tensor:
        tokens = torch.cat([tasks.X, y[..., None]], dim=-1)
        return ((tokens.mT @ tokens / N @ v) * (tasks.x_query @ M.T)).sum(dim=-1)

    plus, minus, target = answer(tasks.y), answer(-tasks.y), tasks.y_query
    Gamma = (v[p] * M[:p] + v[:p, None] * M[p]).T
    kept = (tasks.x_query * (context_moment(tasks) @ Gamma.T)).sum(dim=-1)
    rest = plus - kept
    np.testing.assert_allclose(minus, rest - kept, atol=1e-12)
    assert rest.abs().min() > 0
    errors = ((plus - target).square() + (minus + target).square()) / 2
    np.testing.assert_allclose(errors, (kept - target).square() + rest.square(), rtol=1e-11)


def test_a_balanced_start_has_both_factors_on_one_side():
    """Before the first step Gamma is 0.09 times a positive semidefinite matrix of norm one; an aligned one is not."""
    rule = {"N": 8, "steps": 1, "lr": 0.0, "batch": (6,)}
    Lambda = torch.eye(3, dtype=torch.float64)
    Gamma, rest, _ = train_linear_attention(Lambda, start="balanced", generator=stream(0, "balanced"), **rule)
    torch.testing.assert_close(Gamma, Gamma.mT)
    assert torch.linalg.eigvalsh(Gamma).min() > -1e-12
    torch.testing.assert_close(torch.linalg.matrix_norm(Gamma), torch.full((6,), 0.09, dtype=torch.float64))
    assert rest.max() < 1e-12
    other, _, _ = train_linear_attention(Lambda, start="aligned", generator=stream(0, "balanced"), **rule)
    assert (other - other.mT).abs().max() > 0.01


@pytest.mark.parametrize(
    ("risk", "loss", "share"), [(1.0, 1.0, 1.0), (1.78, 2.48, 0.0), (1.0, 2.48, 0.0), (1.78, 1.0, 0.0)]
)
def test_a_layer_has_arrived_only_with_all_its_parts(risk, loss, share):
    """A Gamma at its optimum is not enough where the other parts of the layer add to its loss."""
    claim = next(each for each in CLAIMS if each.id == "OLS-12.a")
    rows = pd.DataFrame({"replicate": range(4), "risk": 0.5 * risk, "loss": 0.5 * loss, "optimal_risk": 0.5})
    assert claim.measure(rows.assign(spectrum="identity", start="random")).value == share
