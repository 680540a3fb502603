"""Topic plans: what Sinkhorn's iteration returns, in three ways of computing it, and what it refuses."""

import math
import warnings
from itertools import islice

import numpy as np
import pytest
import torch
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.sinkhorn.data.points import random_weights
from derived.papers.sinkhorn.model import plan
from derived.papers.sinkhorn.model.attention import attention_weights, sinkhorn_attention
from derived.papers.sinkhorn.model.couplings import largest_mass
from derived.papers.sinkhorn.model.plan import (
    entropic_plan,
    half_steps,
    iterates,
    problem,
    sinkhorn,
    sinkhorn_symmetric,
)

EXACT = {"tol": 1e-13, "max_iterations": 5000}
GAP = 1e-11  # potentials of size 10 through some 100 iterations of 20 terms each, in float64


def problems(*shape: int, name: str = "plans") -> tuple[Tensor, Tensor, Tensor]:
    """Scores of deviation 1.5 and random weights, (*batch, n, m)."""
    generator = stream(0, name, *shape)
    scores = 1.5 * torch.randn(*shape, generator=generator, dtype=torch.float64)
    return scores, *(random_weights((*shape[:-2], size), generator) for size in shape[-2:])


def near(P: Tensor, Q: Tensor, gap: float = GAP) -> bool:
    return bool((P - Q).abs().max() <= gap)


def newton_plan(scores: Tensor, a: Tensor, b: Tensor, steps: int = 60) -> Tensor:
    """The plan of one table by a damped Newton ascent of the dual: nothing in it alternates.

    The gauge is fixed by f_1 = 0. Each step solves with the Hessian [D_r P; P^T D_c] and is halved until D rises.
    """
    S, a, b = (each.numpy() for each in (scores, a, b))
    n, both = len(a), np.r_[a, b]

    def dual(z: np.ndarray) -> tuple[float, np.ndarray]:
        P = np.exp(np.minimum(S + z[:n, None] + z[n:], 50.0))
        return z @ both - P.sum(), P

    z = np.r_[np.log(a), np.log(b) - np.log((np.exp(S) * a[:, None]).sum(axis=0))]
    value, P = dual(z)
    for _ in range(steps):
        gradient = both - np.r_[P.sum(axis=1), P.sum(axis=0)]
        hessian = np.block([[np.diag(P.sum(axis=1)), P], [P.T, np.diag(P.sum(axis=0))]])
        move = np.r_[0.0, np.linalg.solve(hessian[1:, 1:], gradient[1:])]
        size = 1.0
        while (found := dual(z + size * move))[0] < value - 1e-15 and size > 1e-12:
            size /= 2
        z, (value, P) = z + size * move, found
        if np.abs(gradient).sum() < 2e-15 * len(z):
            break
    return torch.from_numpy(P)


def test_three_ways_to_one_plan():
    """`sk-gibbs`, `sk-offsets`: by an optimiser that knows no half-step, and by other forms of the iteration."""
    scores, a, b = problems(4, 7, 5)
    plan = sinkhorn(scores, a, b, **EXACT).plan
    assert near(plan, sinkhorn(scores, a, b, omega=1.3, **EXACT).plan)
    assert near(plan, half_steps(scores, 801, a, b).exp())
    for table in (scores, scores + torch.arange(7.0).unsqueeze(-1) - torch.arange(5.0)):
        assert near(plan, torch.stack([newton_plan(*each) for each in zip(table, a, b, strict=True)]))


@pytest.mark.parametrize(("scale", "omega"), [(1.0, 1.0), (50.0, 1.0), (2000.0, 1.0), (2000.0, 1.9)])
def test_products_with_a_kernel_are_the_log_sums(scale, omega, monkeypatch):
    """The kernel once, moved, and given up, with tokens of weight zero; potentials of size ``scale``."""
    scores, a, b = problems(3, 12, 9, name="kernel")
    a, b = (each.masked_fill(torch.arange(each.shape[-1]) == 4, 0.0) for each in (a, b))
    given = problem(scale * scores, a / a.sum(dim=-1, keepdim=True), b / b.sum(dim=-1, keepdim=True))
    exact = [*islice(iterates(*given, omega), 40)]
    monkeypatch.setattr(plan._Kernel, "LARGE", 1)
    for one, other in zip(exact, islice(iterates(*given, omega), 40), strict=True):
        assert all(torch.allclose(x, y, rtol=0, atol=scale * GAP) for x, y in zip(one, other, strict=True))


def test_a_token_of_weight_zero_is_as_good_as_absent():
    scores, a, b = problems(5, 4)
    a, b = a.clone(), b.clone()
    a[2], b[0] = 0, 0
    a, b = a / a.sum(), b / b.sum()
    kept = torch.tensor([0, 1, 3, 4])
    alone = sinkhorn(scores[kept][:, 1:], a[kept], b[1:], **EXACT).plan
    found = sinkhorn(scores, a, b, **EXACT)
    assert near(found.plan[kept][:, 1:], alone)
    assert near(found.plan, sinkhorn(scores, a, b, omega=1.3, **EXACT).plan)
    assert not found.plan[2].any()
    assert not found.plan[:, 0].any()
    softmax = half_steps(scores, 1, a, b).exp()
    assert not softmax[:, 0].any()
    assert near(softmax.sum(dim=-1), a)


def test_an_iteration_is_two_half_steps():
    scores, a, b = problems(2, 5, 4)
    for turn, (f, g, residual) in enumerate(islice(iterates(*problem(scores, a, b)), 4)):
        plan = half_steps(scores, 2 * turn + 1, a, b).exp()
        assert near((scores + f.unsqueeze(-1) + g.unsqueeze(-2)).exp(), plan)
        assert near(residual, (plan.sum(dim=-2) - b).abs().sum(dim=-1))


def test_a_result_never_pretends():
    scores, a, b = problems(2, 6, 6)
    result = sinkhorn(4 * scores, a, b, tol=1e-10, max_iterations=2)
    assert not result.converged
    assert result.iterations == 2
    assert near(result.residual, (result.plan.sum(dim=-2) - b).abs().sum(dim=-1))
    assert float(result.residual.max()) > 1e-3


def test_one_potential_for_symmetric_scores():
    scores, a, _ = problems(3, 6, 6)
    scores = scores + scores.mT
    found = sinkhorn_symmetric(scores, a, **EXACT)
    assert near(found.plan, sinkhorn(scores, a, a, **EXACT).plan)
    assert torch.equal(found.plan, found.plan.mT)
    points = torch.randn(7, 3, generator=stream(0, "points"))
    assert sinkhorn_symmetric(points @ points.mT, tol=1e-5).converged  # symmetric to rounding
    with pytest.raises(ValueError, match="not symmetric"):
        sinkhorn_symmetric(torch.triu(torch.ones(3, 3)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_is_computed_in_float32(dtype):
    scores, _, _ = problems(8, 8)
    found = sinkhorn(scores.to(dtype), tol=1e-5)
    assert found.log_plan.dtype == torch.float32
    assert found.converged
    assert sinkhorn_attention(scores.to(dtype), scores.to(dtype), scores.to(dtype)).dtype == dtype
    exact = sinkhorn(scores.to(dtype).double(), tol=1e-12).plan
    assert near(found.plan.double(), exact, 1e-5)  # the tolerance, as mass


@pytest.mark.parametrize("solve", [sinkhorn, sinkhorn_symmetric])
def test_the_default_tolerance_can_be_reached_in_every_precision(solve):
    """In float32 a residual of 1e-9 is below rounding: all iterations would be spent in vain."""
    scores = torch.randn(16, 64, 64, generator=stream(0, "tolerance"))
    scores = (scores + scores.mT) / 2
    single, double = solve(scores), solve(scores.double())
    assert single.converged
    assert double.converged
    assert single.iterations < double.iterations
    assert float(double.residual.max()) <= 1e-9 < float(single.residual.max()) <= 64 * torch.finfo(torch.float32).eps
    assert not solve(scores, tol=1e-9, max_iterations=50).converged, "what is asked for is not mended in silence"


def test_a_mask_where_a_coupling_exists():
    scores, a, _ = problems(4, 4)
    blocks = torch.block_diag(torch.ones(2, 2), torch.ones(2, 2)).bool()
    plan = sinkhorn(scores, a, a, mask=blocks, **EXACT).plan
    assert not plan[~blocks].any()
    part = a[:2] / a[:2].sum()
    assert near(plan[:2, :2] / a[:2].sum(), sinkhorn(scores[:2, :2], part, part, **EXACT).plan)


HALF = torch.tensor([0.5, 0.5])
BAD = {
    "sums to 0.9": lambda: sinkhorn(torch.zeros(2, 2), torch.tensor([0.5, 0.4])),
    "negative": lambda: sinkhorn(torch.zeros(2, 2), torch.tensor([1.5, -0.5])),
    "NaN": lambda: sinkhorn(torch.tensor([[math.nan, 0.0]])),
    r"\+inf": lambda: sinkhorn(torch.tensor([[math.inf, 0.0]])),
    "row 1 has weight": lambda: sinkhorn(torch.tensor([[0.0, 0.0], [-math.inf, -math.inf]])),
    "column 0 has weight": lambda: sinkhorn(torch.tensor([[-math.inf, 0.0], [-math.inf, 0.0]])),
    "What equal weights forbid": lambda: sinkhorn(torch.zeros(3, 3), mask=torch.ones(3, 3).tril().bool()),
    "only coupling is diagonal": lambda: half_steps(torch.zeros(3, 3), 2, mask=torch.ones(3, 3).triu().bool()),
    "max_iterations": lambda: sinkhorn(torch.zeros(2, 2), max_iterations=-1),
    "tol": lambda: sinkhorn(torch.zeros(2, 2), tol=0),
    "omega": lambda: sinkhorn(torch.zeros(2, 2), omega=2.0),
    "num = 0": lambda: half_steps(torch.zeros(2, 2), 0),
    "g is not finite": lambda: sinkhorn(torch.zeros(2, 2), g=torch.tensor([0.0, -math.inf])),
    "f is not finite": lambda: sinkhorn(torch.zeros(2, 2), f=torch.tensor([0.0, math.nan])),
    "descent": lambda: entropic_plan(torch.eye(2), 0.1, descent=1.0),
    "q, k and v are float16, float32, float32": lambda: sinkhorn_attention(HALF.half()[:, None], *2 * [HALF[:, None]]),
    "epsilon": lambda: entropic_plan(torch.zeros(2, 2), 0.0),
    "rounding of torch.float32": lambda: entropic_plan(torch.ones(2, 2), 1e-9),
    "the scores or the mask have NaN": lambda: entropic_plan(torch.full((2, 2), math.nan), 0.1),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_refused_with_the_cure(words):
    with pytest.raises(ValueError, match=words):
        BAD[words]()


def test_the_coldest_temperature_is_that_at_which_rounding_moves_ln_p_by_a_tenth():
    """Below it a temperature is refused, and the one that the message gives is none that is refused again."""
    cost, coldest = 1 - torch.eye(2), 10 * torch.finfo(torch.float32).eps
    assert near(entropic_plan(cost, coldest).plan, torch.eye(2) / 2)
    with pytest.raises(ValueError, match="give at least") as refused:
        entropic_plan(cost, 0.99 * coldest)
    assert near(entropic_plan(cost, float(str(refused.value).rpartition(" ")[2])).plan, torch.eye(2) / 2)


def test_a_batch_hides_no_causal_mask():
    causal, full = torch.ones(3, 3).tril().bool(), torch.ones(3, 3).bool()
    for masks in ((causal, causal.mT), (causal, full), (full, causal.mT)):
        with pytest.raises(ValueError, match="What equal weights forbid"):
            sinkhorn(torch.zeros(2, 3, 3), mask=torch.stack(masks))


def test_a_triangle_is_refused_only_where_no_coupling_or_the_diagonal_alone_lives_on_it():
    early, late = torch.tensor([0.2, 0.8]), torch.tensor([0.8, 0.2])
    causal = torch.ones(2, 2).tril().bool()
    plan = sinkhorn(torch.zeros(2, 2), early, late, mask=causal, tol=1e-6).plan  # late tokens look back at early ones
    assert near(plan, torch.tensor([[0.2, 0.0], [0.6, 0.2]]), 1e-5)
    for a, b, mask in ((late, early, causal), (early, late, causal.mT)):
        with pytest.raises(ValueError, match="no coupling lives"):
            sinkhorn(torch.zeros(2, 2), a, b, mask=mask)
    assert near(sinkhorn(torch.zeros(2, 2), early, early, mask=torch.eye(2).bool()).plan, torch.diag(early), 1e-6)
    with pytest.raises(ValueError, match="no coupling lives"):  # the diagonal itself is masked
        sinkhorn(torch.zeros(3, 3), mask=torch.tensor([[1, 0, 0], [1, 0, 0], [1, 1, 1]]).bool())


def test_causal_softmax_is_welcome():
    q, k, v = torch.randn(3, 1, 4, 5, generator=stream(0, "causal softmax"), dtype=torch.float64)
    causal = torch.ones(4, 4).tril().bool()
    found = sinkhorn_attention(q, k, v, num_half_steps=1, mask=causal)
    assert near(found, torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), 1e-14)


def test_a_mask_may_be_added_as_libraries_do():
    """True where mass may go, 0 and -inf added, and what libraries add for it are one mask; another bias is not."""
    scores, allowed = torch.randn(2, 4, 5, generator=stream(0, "masks"), dtype=torch.float64), torch.ones(4, 5).bool()
    allowed[1, 3] = allowed[2, 0] = False
    plan = sinkhorn(scores, mask=allowed, **EXACT).plan
    for least in (-math.inf, torch.finfo(torch.float32).min, torch.finfo(torch.float16).min, -1e4):
        added = torch.where(allowed, 0.0, least)
        assert near(sinkhorn(scores, mask=added, **EXACT).plan, plan, 1e-14)
        assert torch.equal(half_steps(scores, 3, mask=added), half_steps(scores, 3, mask=allowed))
    bias = torch.zeros(4, 5).index_fill(1, torch.tensor([1]), -2.0)
    assert near(half_steps(scores, 1, mask=bias), half_steps(scores + bias, 1), 1e-14)
    assert not near(half_steps(scores, 1, mask=bias), half_steps(scores, 1), 1e-3)
    for wrong in (math.nan, math.inf):
        with pytest.raises(ValueError, match="or the mask have NaN"):
            half_steps(scores, 1, mask=bias.index_fill(1, torch.tensor([2]), wrong))
    with pytest.raises(ValueError, match="column 0 has weight"):
        sinkhorn(scores, mask=bias.index_fill(1, torch.tensor([0]), torch.finfo(torch.float16).min))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("num", [1, 3, None])
def test_rows_of_attention_sum_to_one_however_large_the_scores_are(dtype, num):
    scores = 1e6 * torch.randn(7, 7, generator=stream(0, "huge"), dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the limit is not reached; rows are right all the same
        A = attention_weights(scores, num, max_iterations=20) if num is None else attention_weights(scores, num)
    assert (A.sum(dim=-1) - 1).abs().max() <= 8 * torch.finfo(dtype).eps


def test_a_warm_start_saves_iterations_and_leaves_the_plan():
    scores, a, b = problems(6, 5)
    before = sinkhorn(2 * scores, a, b, **EXACT)
    moved = 2 * scores + 1e-3 * torch.randn(6, 5, generator=stream(0, "moved"), dtype=torch.float64)
    cold = sinkhorn(moved, a, b, tol=1e-6)
    for start in ({"g": before.g}, {"f": before.f}, {"f": before.f, "g": before.g}):
        warm = sinkhorn(moved, a, b, tol=1e-6, **start)
        assert warm.iterations < cold.iterations / 1.5
        assert near(warm.plan, cold.plan, 1e-4)
    assert sinkhorn(2 * scores, a, b, f=before.f, tol=1e-9).iterations == 0


def test_a_warm_start_knows_no_weight_of_zero():
    scores, a, b = problems(4, 3)
    b = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64)
    first = sinkhorn(scores, a, b, **EXACT)
    assert first.g[2] == -math.inf
    assert near(sinkhorn(scores, a, b, f=first.f, g=first.g, **EXACT).plan, first.plan)
    with pytest.raises(ValueError, match="g is not finite"):
        sinkhorn(scores, a, g=first.g)


def test_a_temperature_that_descends_reaches_the_cold_plan_in_fewer_iterations():
    """Unequal weights, one of them zero; the least cost by a linear program."""
    x, y = torch.rand(2, 8, 2, generator=stream(0, "descent"), dtype=torch.float64)
    _, a, b = problems(8, 8)
    a = torch.cat([a[:7] / a[:7].sum(), a.new_zeros(1)])
    cost, facts = torch.cdist(x, y).square(), {"tol": 1e-6, "max_iterations": 100_000}
    straight = entropic_plan(cost, 2e-3, a, b, **facts)
    down = entropic_plan(cost, 2e-3, a, b, descent=0.5, **facts)
    assert down.converged
    assert down.iterations < straight.iterations
    assert near(down.plan, straight.plan, 1e-3)
    least = float(cost.max()) - largest_mass(torch.ones(8, 8), cost.max() - cost, a, b)
    assert -1e-4 <= float((cost * down.plan).sum()) - least <= 2e-3 * float(torch.special.entr(b).sum()) + 1e-4
