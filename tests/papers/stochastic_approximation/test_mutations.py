"""What breaks it: each changed line loses the property that its legend names, and only the right one keeps all."""

import torch

from derived.lab.rng import stream
from derived.papers.stochastic_approximation.data.environments import Mixture
from derived.papers.stochastic_approximation.model.mutations import (
    HEADS,
    LOOPS,
    dealt_anew,
    distance_from_softmax,
    ends,
)
from derived.papers.stochastic_approximation.model.theory import mean_field_root

A, b = torch.tensor([2.0, 0.75]).double(), torch.tensor([1.0, 3.0]).double()


def worlds(steps: int, replicas: int):
    y, component = Mixture((1.0, 3.0), (0.5, 0.5), (0.5, 0.5)).draw(steps, replicas, stream(1, "worlds"))
    return torch.stack([A[component].expand_as(y), y], dim=-1), component


def test_only_the_right_loop_ends_at_its_root():
    data, component = worlds(4000, 60)
    own = (b / A)[component]
    share = torch.bincount(component, minlength=2) / 60
    mean = float(mean_field_root(A, b, share.double().numpy()))
    found = {name: ends(name, data, stream(2, name)) for name in LOOPS}
    off = {name: (each - own).abs().max() for name, each in found.items()}
    assert off.pop("none") < 0.15
    assert min(off.values()) > 0.3
    assert (found["data dealt anew"] - mean).abs().max() < 0.15
    assert found["$-h$ for $h$"].abs().max() > 100
    assert found["steps $1/n^2$"].std() > 0.3


def test_dealing_keeps_the_data_of_each_time():
    data, _ = worlds(50, 9)
    dealt = dealt_anew(data, stream(3, "deal"))
    assert torch.equal(dealt[..., 1].sort(dim=1).values, data[..., 1].sort(dim=1).values)
    assert not torch.equal(dealt, data)
    pairs = {tuple(each) for each in data.reshape(-1, 2).tolist()}
    assert {tuple(each) for each in dealt.reshape(-1, 2).tolist()} == pairs  # slope and value stay together


def test_only_the_right_head_is_softmax():
    y = 3 + 2 * torch.randn(80, 5, 2, generator=stream(4, "y"), dtype=torch.float64)
    broken = {1.0: {"numerator not rescaled", "all scores 0"}, 200.0: {"no running maximum", "all scores 0"}}
    for size, faulty in broken.items():
        found = {name: distance_from_softmax(head, y, size) for name, head in HEADS.items()}
        assert {name for name, off in found.items() if not off <= 1e-10} == faulty
