"""The exercises of chapter 10: what is right by another route, right answers in odd forms, wrong ones refused."""

import math

import numpy as np
import pytest
import torch

from derived.lab.draws import normals
from derived.lab.exercises import judged
from derived.papers.geometric_tax import exercises, jump_and_spread, procrustes_distortion

EX = exercises.EXERCISES
drawn = normals(0)


def right(label, *answers, part=None):
    for answer in answers:
        assert judged(label, part or EX[label], answer) == "right"


def refused(label, *answers, part=None):
    for answer in answers:
        assert judged(label, part or EX[label], answer).startswith("not right: ")


def test_noise_that_shrinks_and_noise_on_both_by_large_clouds():
    """200,000 points with unequal variances; what is left falls as one over the root of their number."""
    n, s, c = 200_000, 0.3, 0.5
    X = drawn(n, 3, name="X") * torch.tensor([2.0, 1.0, 0.5])
    size = (s * X.var(dim=0).sum() / 3).sqrt()
    one, other = size * drawn(2, n, 3, name="E")
    alone, both = EX["gt-ex-noise"]
    assert alone.right(s=s, c=c) == pytest.approx(procrustes_distortion(X, c * X + one).item(), abs=10 / n**0.5)
    assert both.right(s=s) == pytest.approx(procrustes_distortion(X + one, X + other).item(), abs=10 / n**0.5)


@pytest.mark.parametrize(("K", "eps"), [(2, 0.1), (3, 0.5), (50, 0.02)])
def test_a_smoothed_label_by_the_chords_of_its_path(K, eps):
    """A Fisher-Rao path is twice as long as the path of root probabilities on the unit sphere."""
    share = np.sin(np.linspace(0, math.pi / 2, 200_001)) ** 2
    one = (1 - eps) * np.eye(K)[:2] + eps / K
    roots = np.sqrt(one[0] * (1 - share[:, None]) + one[1] * share[:, None])
    assert EX["gt-ex-smoothed"].right(K=K, eps=eps) == pytest.approx(
        2 * np.linalg.norm(np.diff(roots, axis=0), axis=1).sum(), rel=1e-7
    )


def by_numpy(states, struck):
    h, g = np.asarray(states), np.asarray(struck)
    T = h.reshape(-1, h.shape[-1]).var(axis=0).sum()
    jumps = ((g.sum(axis=2) - h.sum(axis=1)) ** 2).sum(axis=-1)
    return jumps.mean() / T, h.mean(axis=1).var(axis=0).sum() / T


def by_the_package(states, struck):
    found = jump_and_spread(torch.as_tensor(states), torch.as_tensor(struck))
    return torch.stack([found.J / found.T, found.V / found.T])


def test_jump_and_spread_in_any_form():
    right("gt-ex-jump", by_numpy, by_the_package, lambda states, struck: [*map(float, by_numpy(states, struck))])
    swapped = lambda states, struck: by_numpy(states, struck)[::-1]  # noqa: E731
    refused("gt-ex-jump", swapped, lambda states, struck: 1.0)
    refused("gt-ex-jump", *EX["gt-ex-jump"].mistakes.values())
