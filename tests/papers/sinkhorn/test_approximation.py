"""Topic approximation: blocks, kernels and bounds against slow twins, and what the rows say."""

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.sinkhorn import approximation
from derived.papers.sinkhorn.approximation import Blocks, problems
from derived.papers.sinkhorn.data.points import coupling_problems, random_weights
from derived.papers.sinkhorn.model.blocks import block_kernel, conditional_kernel, hats
from derived.papers.sinkhorn.model.couplings import crossed

EXPERIMENTS = (Blocks,)


@pytest.fixture
def problem():
    generator = stream(0, "approximation")
    x, y = torch.rand(2, 5, generator=generator, dtype=torch.float64)
    a, b = random_weights((2, 5), generator)
    return x, y, a, b, crossed(x, y, a, b)


def test_the_distance_falls_as_expected(rows, expected):
    assert approximation.FALL.judge(approximation.FALL.measure(rows[Blocks]))[0] == expected["SK-7.b"]


def test_blocks_of_the_product_coupling_do_not_come_nearer(rows):
    assert abs(approximation.FALL.control(rows[Blocks]).value) < 0.1
    assert approximation.FALL.judge(approximation.FALL.control(rows[Blocks]))[0] == "fails"


@pytest.mark.parametrize("m", [1, 2, 7])
def test_hats_are_a_partition_of_unity_with_small_supports(m):
    x = torch.linspace(0, 1, 101, dtype=torch.float64)
    phi = hats(x, m)
    assert (phi.sum(dim=-1) - 1).abs().max() < 1e-14
    for k in range(m + 1):
        inside = x[phi[:, k] > 0]
        assert inside.max() - inside.min() <= 2 / m


def hat(x: float, k: int, m: int) -> float:
    return max(0.0, 1 - abs(m * x - k))


def test_the_kernel_is_its_sum_over_blocks(problem):
    x, y, a, b, target = (each.tolist() for each in problem)
    m, tau, floor, n = 3, 1e-2, 0.05, range(5)
    found = block_kernel(*problem, m, tau, floor).exp()
    mu = [sum(a[i] * hat(x[i], k, m) for i in n) for k in range(m + 1)]
    nu = [sum(b[j] * hat(y[j], k, m) for j in n) for k in range(m + 1)]
    for i in n:
        for j in n:
            total = floor
            for k in range(m + 1):
                for h in range(m + 1):
                    w = sum(target[p][q] * hat(x[p], k, m) * hat(y[q], h, m) for p in n for q in n)
                    scale = (mu[k] + tau) * (nu[h] + tau)
                    total += (1 - floor) * w * hat(x[i], k, m) * hat(y[j], h, m) / scale
            assert abs(total - float(found[i, j])) < 1e-12


@pytest.mark.parametrize("relation", ["comonotone", "crossed"])
def test_one_token_of_each_first_text_has_next_to_no_weight(relation):
    drawn = problems(relation, 2, 6, 0)
    plain = coupling_problems(relation, 2, 6, stream(0, "blocks", relation))
    for found, before in ((drawn.a, plain.a), (drawn.b, plain.b)):
        assert float(found[0, 0] * (1 - before[0, 0] + 1e-8)) == pytest.approx(1e-8)
        assert torch.allclose(found[0, 1:] / found[0, 1:].sum(), before[0, 1:] / before[0, 1:].sum())
        assert torch.equal(found[1:], before[1:])
        assert (found.sum(dim=-1) - 1).abs().max() < 1e-14
    assert (drawn.target.sum(dim=-1) - drawn.a).abs().max() < 1e-14
    assert (drawn.target.sum(dim=-2) - drawn.b).abs().max() < 1e-14


BAD = {
    "m = 0": lambda: hats(torch.zeros(1), 0),
    "from 0 to 1": lambda: hats(torch.tensor([1.5]), 2),
    "tau": lambda: block_kernel(*[torch.tensor([0.5])] * 2, *[torch.ones(1)] * 2, torch.ones(1, 1), 2, tau=0.0),
    "floor": lambda: conditional_kernel(torch.tensor([0.5]), torch.ones(1), torch.ones(1, 1), 2, floor=1.0),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_refused(words):
    with pytest.raises(ValueError, match=words):
        BAD[words]()
