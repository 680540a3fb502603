"""The exercises of chapter 10: what is right by another route, right answers in odd forms, wrong ones refused."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch
from scipy.spatial.transform import Rotation

from derived.lab.draws import normals
from derived.lab.exercises import judged
from derived.papers.geometric_tax import exercises, procrustes_distortion
from derived.papers.geometric_tax.data.dna import kmer_counts, reverse_complement, strand_permutation
from derived.papers.geometric_tax.model.metrics import best_rotation

EX = exercises.EXERCISES
drawn = normals(0)


def right(label, *answers, part=None):
    for answer in answers:
        assert judged(label, part or EX[label], answer) == "right"


def refused(label, *answers, part=None):
    for answer in answers:
        assert judged(label, part or EX[label], answer).startswith("not right: ")


# What is right, by another route -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("K", "u"), [(1, 0.5), (2, 0.0), (7, 0.3)])
def test_where_a_bin_is_decoded_by_a_fine_grid(K, u):
    x = (np.arange(700_000) + 0.5) / 700_000
    slow = np.mean((x - (np.floor(x * K) + u) / K) ** 2)
    assert EX["gt-ex-edge"].right(K=K, u=u) == pytest.approx(slow, rel=1e-6)


def test_noise_that_shrinks_and_noise_on_both_by_large_clouds():
    """200,000 points with unequal variances; what is left falls as one over the root of their number."""
    n, s, c = 200_000, 0.3, 0.5
    X = drawn(n, 3, name="X") * torch.tensor([2.0, 1.0, 0.5])
    size = (s * X.var(dim=0).sum() / 3).sqrt()
    one, other = size * drawn(2, n, 3, name="E")
    alone, both = EX["gt-ex-noise"]
    assert alone.right(s=s, c=c) == pytest.approx(procrustes_distortion(X, c * X + one).item(), abs=10 / n**0.5)
    assert both.right(s=s) == pytest.approx(procrustes_distortion(X + one, X + other).item(), abs=10 / n**0.5)


@pytest.mark.parametrize(("n", "k", "l"), [(4, 1, 2), (4, 0, 3), (9, 7, 2)])
def test_one_wrong_token_by_trying_every_angle_and_by_eigenvalues(n, k, l):
    """On a line the only rotations are 1 and -1; of one-hot codes the nuclear norm by NumPy."""
    ordered, one_hot = EX["gt-ex-one"]
    x, y = np.arange(float(n)), np.arange(float(n))
    y[k] = l
    x, y = ((each - each.mean()) / np.linalg.norm(each - each.mean()) for each in (x, y))
    assert ordered.right(n=n, k=k, l=l) == pytest.approx(min(np.linalg.norm(x - y), np.linalg.norm(x + y)) / 2**0.5)
    centre = np.eye(n) - 1 / n
    noisy = np.eye(n)
    noisy[k] = noisy[l]
    X, Y = (each / np.linalg.norm(each) for each in (centre, centre @ noisy))
    assert one_hot.right(n=n) == pytest.approx((1 - np.linalg.norm(X.T @ Y, "nuc")) ** 0.5)


def test_the_numbers_of_the_smallest_example():
    ordered, one_hot = EX["gt-ex-one"]
    assert [round(ordered.right(n=4, k=k, l=l), 2) for k, l in ((1, 2), (0, 3))] == [0.28, 0.93]
    assert round(one_hot.right(n=4), 2) == 0.43


@pytest.mark.parametrize(("K", "eps"), [(2, 0.1), (3, 0.5), (50, 0.02)])
def test_a_smoothed_label_by_the_chords_of_its_path(K, eps):
    """A Fisher-Rao path is twice as long as the path of root probabilities on the unit sphere."""
    share = np.sin(np.linspace(0, math.pi / 2, 200_001)) ** 2
    one = (1 - eps) * np.eye(K)[:2] + eps / K
    roots = np.sqrt(one[0] * (1 - share[:, None]) + one[1] * share[:, None])
    assert EX["gt-ex-smoothed"].right(K=K, eps=eps) == pytest.approx(
        2 * np.linalg.norm(np.diff(roots, axis=0), axis=1).sum(), rel=1e-7
    )


def test_unmatched_entries_over_all_orders_of_points():
    points = drawn(2, 4, 2, name="points")
    a, b = (torch.pdist(each).numpy() for each in points)
    orders = itertools.permutations(range(4))
    slow = np.mean([a @ torch.pdist(points[1][list(order)]).numpy() for order in orders])
    assert EX["gt-ex-split"].right(a=a, b=b) == pytest.approx(slow)
    assert slow == pytest.approx(a.sum() * b.sum() / 6)


# Right answers in odd forms, wrong ones ------------------------------------------------------------------------------


def by_order(n, k, l):
    x = np.arange(n) - (n - 1) / 2
    y = np.where(np.arange(n) == k, x[l], x)
    y = y - y.mean()
    return np.sqrt(1 - x @ y / np.linalg.norm(x) / np.linalg.norm(y))


def by_eigenvalues(n):
    last = 2 * (n - 1) / n
    return (1 - (n - 3 + last**0.5) / ((n - 1) * (n - 3 + last)) ** 0.5) ** 0.5


def on_a_circle(K, eps):
    a, b = 1 - eps + eps / K, eps / K
    radius = 2 * (a + b) ** 0.5
    return radius * (math.asin((a / (a + b)) ** 0.5) - math.asin((b / (a + b)) ** 0.5))


def test_right_numbers_of_any_kind_are_right():
    K, u, s, c, eps = sympy.symbols("K u s c eps", positive=True)
    right("gt-ex-edge", (sympy.Rational(1, 12) + (u - sympy.Rational(1, 2)) ** 2) / K**2)
    right("gt-ex-edge", lambda K, u: (1 / Fraction(3) - Fraction(u) + Fraction(u) ** 2) / K**2)
    alone, both = EX["gt-ex-noise"]
    right("gt-ex-noise", sympy.sqrt(1 - c / sympy.sqrt(c**2 + s)), part=alone)
    right("gt-ex-noise", lambda c, s: torch.sqrt(1 - 1 / torch.sqrt(1 + torch.tensor(s) / c**2)), part=alone)
    right("gt-ex-noise", lambda noise: round(math.sqrt(noise / (1 + noise)), 5), sympy.sqrt(s / (1 + s)), part=both)
    ordered, one_hot = EX["gt-ex-one"]
    right(
        "gt-ex-one", by_order, lambda tokens, wrong, into: float(f"{by_order(tokens, wrong, into):.3g}"), part=ordered
    )
    right("gt-ex-one", by_eigenvalues, lambda n: np.float32(by_eigenvalues(n)), part=one_hot)
    a, b = 1 - eps + eps / K, eps / K
    formula = 2 * sympy.sqrt(a + b) * (sympy.asin(sympy.sqrt(a / (a + b))) - sympy.asin(sympy.sqrt(b / (a + b))))
    right("gt-ex-smoothed", formula, on_a_circle, lambda K, eps: round(on_a_circle(K, eps), 2))
    right("gt-ex-split", lambda a, b: sum(a) * sum(b) / 6, lambda x, y: torch.tensor(x).mean() * y.sum())


def by_words(g, k):
    """Letter by letter, in plain Python."""
    table = np.zeros((len(g), 4**k))
    for row, letters in zip(table, np.asarray(g).tolist(), strict=True):
        for strand in (letters, [3 - each for each in letters[::-1]]):
            for at in range(len(strand) - k + 1):
                row[int("".join(map(str, strand[at : at + k])), 4)] += 1
    return table


def test_a_count_without_a_strand_in_any_form():
    right("gt-ex-strand", by_words, lambda g, k: kmer_counts(g, k) + kmer_counts(reverse_complement(g), k))
    right("gt-ex-strand", lambda g, k: (kmer_counts(g, k) + kmer_counts(g, k)[:, strand_permutation(k)]).tolist())
    said = judged("gt-ex-strand", EX["gt-ex-strand"], EX["gt-ex-strand"].mistakes["one strand alone"])
    assert "the other strand has counts that differ" in said
    refused("gt-ex-strand", kmer_counts, lambda g, k: 0 * kmer_counts(g, k), lambda g, k: kmer_counts(g, k).sum(dim=0))


def by_singular_vectors(X, Y):
    U, _, V = np.linalg.svd(np.asarray(X).T @ np.asarray(Y))
    return U * [1, 1, np.linalg.det(U @ V)] @ V


def test_a_rotation_that_is_no_mirror_in_any_form():
    """SciPy's solution of Wahba's problem, which is the same, is right: another library's independent route."""
    by_scipy = lambda X, Y: Rotation.align_vectors(X.numpy(), Y.numpy())[0].as_matrix()  # noqa: E731
    right("gt-ex-rotation", by_singular_vectors, by_scipy)
    right("gt-ex-rotation", lambda X, Y: torch.as_tensor(by_singular_vectors(X, Y)).float())
    refused("gt-ex-rotation", best_rotation, lambda X, Y: by_singular_vectors(Y, X))
    said = judged(
        "gt-ex-rotation", EX["gt-ex-rotation"], EX["gt-ex-rotation"].mistakes["the direction that fits best is turned"]
    )
    assert "half a turn more" in said


def test_a_check_does_not_print_the_answer(capsys):
    exercises.check("gt-ex-noise", lambda s, c: 0.5, lambda s: 2.0)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("(a) not right: at s = ")
    assert said[1].endswith("yours is 2, above 1")
