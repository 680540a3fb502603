"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

symbol   name   meaning                                                           axes
K        K      bins of the unit interval                                         scalar
u        u      where in its bin a token is decoded, a share of the width         scalar
s, c     s, c   variance of noise over that of the signal; factor of shrinking    scalar
n, k, l  n, k, l   tokens 0 to n - 1; the one that noise turns, and into which    scalar
a, b     a, b   distances of the six pairs of four points                         (6,)
g        g      DNA letters, ACGT = 0123                                          (n, L)
X, Y     X, Y   centred clouds, rows correspond                                   (n, p)
"""

import itertools
import math

import numpy as np
import torch
from scipy.integrate import quad

from derived.lab.exercises import FLOAT32, ask, checker, close, holds, ranges

from .data.dna import kmer_counts, reverse_complement
from .model.metrics import best_rotation, noise_law, procrustes_distortion
from .model.mutations import framed_counts

# Where in its bin -----------------------------------------------------------------------------------------------------

in_its_bin = close(
    lambda K, u: K * quad(lambda x: (x - u / K) ** 2, 0, 1 / K)[0],  # the mean over one bin
    ranges(K=(2, 40), u=(0.0, 1.0)),
    digits=3,
    mistakes={
        "that is right in the middle alone": lambda K, u: 1 / (12 * K**2),
        "the error of a bin's end is not where every bin is decoded": lambda K, u: 1 / (3 * K**2),
    },
)

# Noise that shrinks, and noise on both --------------------------------------------------------------------------------


def _law(s: float) -> float:
    return noise_law(torch.tensor(s, dtype=torch.float64)).item()


shrunk = (
    close(
        lambda s, c: _law(s / c**2),
        ranges(s=(0.02, 1.5), c=(0.3, 0.9)),
        mistakes={
            "a smaller cloud drowns in the same noise": lambda s, c: _law(s),
            "variances shrink with the square": lambda s, c: _law(s / c),
        },
    ),
    close(
        lambda s: _law((1 + s) ** 2 - 1),
        ranges(s=(0.02, 1.5)),
        mistakes={
            "the clean cloud is noisy, too": _law,
            "both norms grow, and each by itself": lambda s: _law(2 * s),
        },
    ),
)

# One token wrong ------------------------------------------------------------------------------------------------------


def _tokens(generator: torch.Generator) -> dict:
    n = 4 + int(torch.randint(9, (), generator=generator))
    k, l = torch.randperm(n, generator=generator)[:2].tolist()
    return {"n": n, "k": k, "l": l}


def _distortion(codes: torch.Tensor, k: int, l: int) -> float:
    noisy = codes.clone()
    noisy[k] = codes[l]
    return procrustes_distortion(codes, noisy).item()


def _one_hot(n: int, norm: float, root: float = 0.5) -> float:
    return (1 - (n - 3 + (2 * (n - 1) / n) ** 0.5) / norm) ** root


def _line(n: int, k: int, l: int, centre: bool = True, root: float = 0.5) -> float:
    x = np.arange(n) - (n - 1) / 2 * centre
    y = x.copy()
    y[k] = x[l]
    y = y - y.mean() * centre
    return (1 - x @ y / math.sqrt((x @ x) * (y @ y))) ** root


one_wrong = (
    close(
        lambda n, k, l: _distortion(torch.arange(float(n), dtype=torch.float64)[:, None], k, l),
        _tokens,
        digits=3,
        mistakes={
            "both clouds are centred, each at its own mean": lambda n, k, l: _line(n, k, l, centre=False),
            "that is the square of D": lambda n, k, l: _line(n, k, l, root=1.0),
        },
    ),
    close(
        lambda n: _distortion(torch.eye(n, dtype=torch.float64), 0, 1),
        ranges(n=(4, 20)),
        digits=3,
        mistakes={
            "the noisy cloud has a norm of its own": lambda n: _one_hot(n, n - 1),
            "that is the square of D": lambda n: _one_hot(n, math.sqrt((n - 1) * (n - 3 + 2 * (n - 1) / n)), root=1.0),
        },
    ),
)

# A smoothed label -----------------------------------------------------------------------------------------------------


def _ends(K: int, eps: float) -> tuple[float, float]:
    """What a smoothed label gives to its own bin and to any other."""
    return 1 - eps + eps / K, eps / K


def _crossing(K: int, eps: float) -> float:
    """The length by quadrature, over an angle that takes the steep ends away: p = low + (high - low) sin^2."""
    high, low = _ends(K, eps)

    def speed(angle: float) -> float:
        one, other = (low + (high - low) * f(angle) ** 2 for f in (math.sin, math.cos))
        slope = (high - low) * 2 * math.sin(angle) * math.cos(angle)
        return slope * math.sqrt(1 / one + 1 / other)

    return quad(speed, 0, math.pi / 2)[0]


def _arc(one: float, other: float, radius: float) -> float:
    return radius * 2 * (math.asin(math.sqrt(one)) - math.asin(math.sqrt(other)))


smoothed = close(
    _crossing,
    ranges(K=(3, 60), eps=(0.02, 0.6)),
    digits=3,
    mistakes={
        "that is the hard label": lambda K, eps: math.pi,
        "the other bins hold a part of the probability": lambda K, eps: _arc(*_ends(K, eps), 1.0),
    },
)

# Unmatched entries ----------------------------------------------------------------------------------------------------

_UPPER, _ORDERS = np.triu_indices(4, 1), list(itertools.permutations(range(4)))


def _distances(generator: torch.Generator) -> dict:
    a, b = (torch.rand(2, 6, generator=generator, dtype=torch.float64) * 100).round().numpy() / 100
    return {"a": a, "b": b}


def _over_all_orders(a: np.ndarray, b: np.ndarray) -> float:
    full = np.zeros((4, 4))
    full[_UPPER] = b
    full = full + full.T
    return np.mean([a @ full[np.ix_(order, order)][_UPPER] for order in _ORDERS])


expected_product = close(
    _over_all_orders,
    _distances,
    mistakes={
        "that keeps each point in its place": lambda a, b: a @ b,
        "it is zero for centred numbers only": lambda a, b: 0.0,
    },
)

# A count that has no strand -------------------------------------------------------------------------------------------


def _letters(generator: torch.Generator) -> dict:
    k = 1 + int(torch.randint(3, (), generator=generator))
    return {"g": torch.randint(4, (3, 25), generator=generator, dtype=torch.uint8), "k": k}


def _table(strandless, g, k) -> np.ndarray:
    return ask(strandless, (len(g), 4**k), g=g, k=k)


def _no_strand(strandless, g, k):
    """`gt-rc`: the counts of a sequence and of its reverse complement are equal."""
    off = np.abs(_table(strandless, g, k) - _table(strandless, reverse_complement(g), k)).max()
    return f"the other strand has counts that differ by {off:g}" if off > FLOAT32 else None


def _every_word_twice(strandless, g, k):
    """`gt-rc`: each place of a word is counted once on either strand."""
    total = _table(strandless, g, k).sum(axis=1)[0]
    wanted = 2 * (g.shape[1] - k + 1)
    return f"its counts sum to {total:g}, and {wanted} words are read" if abs(total - wanted) > FLOAT32 else None


def _by_reading(strandless, g, k):
    """`gt-rc`: read letter by letter on both strands of the first sequence."""
    counts, one = np.zeros(4**k), g[0].tolist()
    for strand in (one, [3 - letter for letter in reversed(one)]):
        for at in range(len(one) - k + 1):
            counts[sum(letter * 4**place for place, letter in enumerate(reversed(strand[at : at + k])))] += 1
    off = np.abs(_table(strandless, g, k)[0] - counts)
    word = "".join("ACGT"[int(off.argmax()) // 4**place % 4] for place in reversed(range(k)))
    return f"the count of {word} is off by {off.max():g}" if off.max() > FLOAT32 else None


strandless = holds(
    (_every_word_twice, _no_strand, _by_reading),
    _letters,
    mistakes={
        "words in one frame": lambda g, k: framed_counts(g, k) + framed_counts(reverse_complement(g), k),
        "one strand alone": lambda g, k: 2 * kmer_counts(g, k),
    },
)

# A rotation that is no mirror -----------------------------------------------------------------------------------------


def _clouds(generator: torch.Generator) -> dict:
    """A cloud and a turned copy with much noise, in half of the cases of its mirror image."""
    X, noise = torch.randn(2, 12, 3, generator=generator, dtype=torch.float64)
    turn = torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=torch.float64)).Q
    turn[:, 0] *= 1 - 2 * torch.randint(2, (), generator=generator)
    Y = X @ turn + 0.5 * noise
    return {"X": X - X.mean(dim=0), "Y": Y - Y.mean(dim=0)}


def _a_rotation(turn, X, Y):
    """`gt-nuclear`: R^T R = 1, and no mirror."""
    R = ask(turn, (3, 3), X=X, Y=Y)
    if (off := np.abs(R.T @ R - np.eye(3)).max()) > FLOAT32:
        return f"R'R differs from 1 by {off:.2g}"
    return f"its determinant is {np.linalg.det(R):.2g}" if np.linalg.det(R) < 0 else None


def _none_is_nearer(turn, X, Y):
    """`gt-nuclear`: tr(R^T X^T Y) is the largest. With R^T X^T Y symmetric no small turn helps, and with its two least
    eigenvalues of positive sum no half turn in a plane does: then none does."""
    R = torch.as_tensor(ask(turn, (3, 3), X=X, Y=Y))
    S = R.mT @ X.mT @ Y
    if (S - S.mT).abs().max() > 1e-4 * S.abs().max():
        return "a small turn more brings X R nearer to Y"
    if torch.linalg.eigvalsh(S + S.mT)[:2].sum() < -FLOAT32:
        return "half a turn more, in some plane, brings X R nearer to Y"
    return None


def _turned_back(turn, X, Y):
    """`gt-invariant`: a turned copy is found."""
    del Y
    R = torch.linalg.matrix_exp(torch.tensor([[0.0, -0.7, 0.3], [0.7, 0.0, 0.5], [-0.3, -0.5, 0.0]], dtype=X.dtype))
    off = np.abs(ask(turn, (3, 3), X=X, Y=X @ R) - R.numpy()).max()
    return f"for a turned copy of X it is off by {off:.2g}" if off > FLOAT32 else None


def _flipped(place: int):
    """U F V^T, with the sign of one singular direction turned where U V^T is a mirror."""

    def turn(X, Y):
        U, _, V = torch.linalg.svd(X.mT @ Y)
        signs = torch.ones(3, dtype=X.dtype)
        signs[place] = torch.linalg.det(U @ V).sign()
        return U * signs @ V

    return turn


rotation = holds(
    (_a_rotation, _turned_back, _none_is_nearer),
    _clouds,
    mistakes={
        "mirrors are let in": best_rotation,
        "rotated the wrong way": lambda X, Y: _flipped(-1)(X, Y).mT,
    },
)

EXERCISES = {
    "gt-ex-edge": in_its_bin,
    "gt-ex-noise": shrunk,
    "gt-ex-one": one_wrong,
    "gt-ex-smoothed": smoothed,
    "gt-ex-split": expected_product,
    "gt-ex-strand": strandless,
    "gt-ex-rotation": rotation,
}
check = checker(EXERCISES)
