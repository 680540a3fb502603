"""Closed forms: what one write does to a logit, what a number format keeps of it, and who reads whom.

symbol       name       meaning                                                        axes
e_w          read_out   embedding of token w, with which its logit is read             (V, d)
v_t          values     what is written for token t                                    (N, d)
z_t          keys       the MLP's inner activation at token t                          (N, h)
z_n          query      the key of the token that asks                                 (h,)
lambda       lr         inner step                                                     scalar
d, h, V      d, h, V    width, inner width, size of the vocabulary                     scalar
epsilon      epsilon    largest |e_w . e_w'| of two tokens                             scalar
c_norm^2     norm2      smallest |e_w|^2                                               scalar
c_align      align      E <z_t*, z_n> of the pair that matters                         scalar
n            n          tokens; in an (n, n) array rows read and columns are read      scalar
C            chunk      tokens per chunk; token t is in chunk floor(t / C)             scalar
             behind     taps of the target into the past, 2 as released                scalar
             ahead      taps into the future, 2 as released                            scalar
             crossing   whether a tap may leave its chunk (as released: no)            bool

Of who reads whom, the static part of the layer and attention are left out: both are causal.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import brentq
from torch import Tensor
from torch.special import erfc

from derived.lab.checks import check_count, check_positive

from .forms import read_mask


def logit_shift(
    read_out: Float[Tensor, "V d"],
    values: Float[Tensor, "N d"],
    keys: Float[Tensor, "N h"],
    query: Float[Tensor, "h"],
    lr: float = 1.0,
) -> Float[Tensor, "V"]:
    """What the write sum_t v_t z_t^T adds to every logit: lambda sum_t (e_w . v_t) <z_t, z_n>. [paper, proof of Thm 1]

    >>> pair = torch.eye(2)
    >>> logit_shift(pair, values=pair[1:], keys=pair[:1], query=pair[0])  # the key of token 0 holds token 1
    tensor([0., 1.])
    """
    return lr * read_out @ (values.mT @ (keys @ query))


def mean_bias(
    read_out: Float[Tensor, "V d"], values: Float[Tensor, "N d"], mean: Float[Tensor, "h"], lr: float = 1.0
) -> Float[Tensor, "V"]:
    """The expected shift of every logit by unrelated tokens whose keys have the mean mu: lambda |mu|^2 sum_t e_w . v_t.

    Keys and query are independent, each of mean mu; without one (mu = 0) it is zero, with one it grows like N. [ours]
    """
    return lr * mean.square().sum() * (read_out @ values.sum(dim=0))


def shift_variance(
    read_out: Float[Tensor, "V d"], values: Float[Tensor, "N d"], query: Float[Tensor, "h"], lr: float = 1.0
) -> Float[Tensor, "V"]:
    """Var(shift of logit w | query) = lambda^2 (|z_n|^2 / h) sum_t (e_w . v_t)^2 by N unrelated tokens. [ours]

    Their keys have independent entries of mean 0 and variance 1/h. With unit embeddings in random directions the sum is
    N/d on average, and one more for each time that w itself was written.
    """
    return lr**2 * query.square().sum() / query.numel() * (read_out @ values.mT).square().sum(dim=-1)


def capacity(d: int, h: int, V: int) -> float:
    """dh / (2 ln V): about how many unrelated pairs a memory of d x h holds before the top logit is wrong. [ours]

    The largest of V noises of size sqrt(N / (dh)) is about sqrt(2 ln V) of them, and reaches the signal 1 there. For a
    vocabulary well above d; ``capacity_of_few`` knows how often each token is written.
    ValueError unless d, h >= 1 and V >= 2.

    >>> round(capacity(64, 64, 256))
    369
    """
    for name, value, least in (("d", d, 1), ("h", h, 1), ("V", V, 2)):
        check_count(name, value, least)
    return d * h / (2 * math.log(V))


def wins(V: int, a: float) -> float:
    """P(x + a exceeds V - 1 others), all independent standard normal: int phi(x) Phi(x + a)^(V-1) dx. [ours]

    How often the right token is on top if V <= d embeddings are orthonormal and each is the value of N / V pairs, for
    a = sqrt(V h / N). ValueError unless V >= 2.

    >>> round(wins(4, 0.0), 6)  # chance
    0.25
    """
    check_count("V", V, 2)
    x = torch.linspace(-10, 10, 4001, dtype=torch.float64)
    density = torch.exp(-x.square() / 2) / math.sqrt(2 * math.pi)
    return float(torch.trapezoid(density * (0.5 * erfc(-(x + a) / math.sqrt(2))) ** (V - 1), x))


def capacity_of_few(d: int, h: int, V: int) -> float:
    """h / (a^2 (1/d + 1/V)), wins(V, a) = 1/2: about how many pairs leave half of the answers right. [ours]

    Exact for orthonormal embeddings without the term 1/d. Unlike ``capacity`` it holds for V < d, where tokens are
    written many times. ValueError unless d, h >= 1 and V >= 3: of two tokens half is chance.

    >>> round(capacity_of_few(64, 64, 8)), round(capacity(64, 64, 8))
    (253, 985)
    """
    for name, value, least in (("d", d, 1), ("h", h, 1), ("V", V, 3)):
        check_count(name, value, least)
    half = brentq(lambda a: wins(V, a) - 0.5, 0, 10)
    return h / (half**2 * (1 / d + 1 / V))


def gated_key_bias(d: int) -> float:
    """1 / (4 d E SiLU(g)^2), g standard normal: E <z(y), z(y')> / E |z(y)|^2 of gated keys, about 0.70 / d. [ours]

    Over Gaussian gates and inputs of length sqrt(d) in independent uniform directions. ValueError unless d >= 1.

    >>> round(gated_key_bias(1), 3)
    0.703
    """
    check_count("d", d)
    g = torch.linspace(-12, 12, 4801, dtype=torch.float64)
    density = torch.exp(-g.square() / 2) / math.sqrt(2 * math.pi)
    return 1 / (4 * d * float(torch.trapezoid(density * torch.nn.functional.silu(g) ** 2, g)))


def share_written(weight_std: float, write_rms: float) -> float:
    """Share of weights that change when a write is added and rounded to the 8 significant bits of bf16. [ours]

    Weights and writes are Gaussian, of these sizes. A weight in [2^e, 2^(e+1)) lies 2^(e-7) from its neighbours,
    so a write of less than half of that is lost. Sum over the binades of P(weight there) P(|write| > 2^(e-8)); the
    powers of two themselves, one weight in 128, whose lower neighbour is half as far, count like the others.
    ValueError unless both sizes are positive.

    >>> f"{share_written(0.02, 1e-5 / (2560 * 9728) ** 0.5):.1e}"
    '2.4e-05'
    """
    check_positive("weight_std", weight_std)
    check_positive("write_rms", write_rms)
    e = torch.arange(-126, 20, dtype=torch.float64)
    below = lambda x: 1 - erfc(x / math.sqrt(2))  # noqa: E731  P(|standard normal| < x)
    there = below(2 ** (e + 1) / weight_std) - below(2**e / weight_std)
    return float((there * erfc(2 ** (e - 8) / write_rms / math.sqrt(2))).sum())


# Who reads whom -------------------------------------------------------------------------------------------------------


def lag(n: int, chunk: int) -> Int[Tensor, "n"]:
    """(t mod C) + 1: the tokens of the own chunk up to t, which are not written when t reads. [ours]

    >>> lag(5, 2)
    tensor([1, 2, 1, 2, 1])
    """
    return torch.arange(n) % chunk + 1


def tapped(n: int, chunk: int, behind: int = 2, ahead: int = 2, crossing: bool = False) -> Bool[Tensor, "n n"]:
    """Whether the value of token t is made of the input at s: -behind <= s - t <= ahead, in one chunk unless crossing.

    ValueError unless behind, ahead >= 0.
    """
    check_count("behind", behind, 0)
    check_count("ahead", ahead, 0)
    chunks, at = torch.arange(n) // chunk, torch.arange(n)
    apart = at.unsqueeze(0) - at.unsqueeze(1)
    near = (apart >= -behind) & (apart <= ahead)
    return near if crossing else near & (chunks.unsqueeze(0) == chunks.unsqueeze(1))


def reach(n: int, chunk: int, behind: int = 2, ahead: int = 2, crossing: bool = False) -> Bool[Tensor, "n n"]:
    """Whether the memory's answer at token n depends on the input at s through some value that it reads. [ours]

    An entry above the diagonal is a leak.

    >>> reach(4, 2, behind=0, ahead=2, crossing=True).int()[2]  # token 2 sees token 3, which is its label
    tensor([1, 1, 1, 1], dtype=torch.int32)
    """
    read, made = read_mask(n, chunk), tapped(n, chunk, behind, ahead, crossing)
    return (read.double() @ made.double()) > 0
