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
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import brentq
from torch import Tensor
from torch.special import erfc

from derived.lab.checks import check_at_least, check_count, check_positive, check_within

from .forms import read_mask


def logit_shift(
    read_out: Float[Tensor, "V d"], values: Float[Tensor, "N d"], keys: Float[Tensor, "N h"], query: Float[Tensor, "h"],
    lr: float = 1.0,
) -> Float[Tensor, "V"]:  # fmt: skip
    """What the write sum_t v_t z_t^T adds to every logit: lambda sum_t (e_w . v_t) <z_t, z_n>. [paper, proof of Thm 1]

    >>> pair = torch.eye(2)
    >>> logit_shift(pair, values=pair[1:], keys=pair[:1], query=pair[0])  # the key of token 0 holds token 1
    tensor([0., 1.])
    """
    return lr * read_out @ (values.mT @ (keys @ query))


def expected_logits(read_out: Float[Tensor, "V d"], target: int, align: float, lr: float = 1.0) -> Float[Tensor, "V"]:
    """lambda c_align e_w . e_target for every w: the expected shift where the pair's value is ``target``. [paper]

    The next-token target is the right answer v*, the reconstruction target is the query k* itself.

    >>> expected_logits(torch.eye(3), target=2, align=0.5)
    tensor([0.0000, 0.0000, 0.5000])
    """
    return lr * align * read_out @ read_out[target]


class Promise(NamedTuple):
    """What Theorem 1 promises of expected logits: the bound token moves by at least ``gain``, any other by at most
    ``reach`` in size."""

    gain: float
    reach: float

    @property
    def margin(self) -> float:
        """How far the expected logit of the bound token moves away from any other, at least."""
        return self.gain - self.reach


def promise(norm2: float, epsilon: float, align: float, lr: float = 1.0) -> Promise:
    """gain = lambda c_norm^2 c_align and reach = lambda epsilon c_align. [paper, Thm 1; its margin ours]

    ValueError unless norm2, align and lr are positive and epsilon >= 0.

    >>> promise(norm2=1.0, epsilon=0.25, align=2.0).margin
    1.5
    """
    for name, value in (("norm2", norm2), ("align", align), ("lr", lr)):
        check_positive(name, value)
    check_at_least("epsilon", epsilon, 0)
    return Promise(lr * norm2 * align, lr * epsilon * align)


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


def logit_noise(N: int, d: int, h: int, lr: float = 1.0) -> float:
    """lambda sqrt(N / (dh)): the noise on a logit by N unrelated tokens, its standard deviation. [ours]

    For a query of length one and unit embeddings in random directions; ``shift_variance`` knows the embeddings.
    ValueError unless N, d, h >= 1.

    >>> logit_noise(256, 16, 16)
    1.0
    """
    for name, value in (("N", N), ("d", d), ("h", h)):
        check_count(name, value)
    return lr * math.sqrt(N / (d * h))


def failure_bound(
    read_out: Float[Tensor, "V d"], values: Float[Tensor, "N d"], query: Float[Tensor, "h"], target: int,
    shift: Float[Tensor, "V"], lr: float = 1.0,
) -> Tensor:  # fmt: skip
    """P(some logit beats the target's) <= sum_w Q(m_w / s_w) with Gaussian unrelated keys. [ours]

    ``shift`` is what the pair itself adds to the logits, m_w the target's part less that of w, s_w^2 the variance of
    their difference, Q the upper tail of the standard normal law. Above 1 it says nothing.
    """
    ahead = shift[target] - shift
    apart = read_out[target] - read_out
    spread = shift_variance(apart, values, query, lr).sqrt()
    tails = 0.5 * erfc(ahead / spread.clamp(min=torch.finfo(spread.dtype).tiny) / math.sqrt(2))
    return tails.sum() - tails[target]


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


def relu_key_cosine(rho: Tensor | float) -> Tensor:
    """Cosine of the keys relu(Wx), relu(Wx') of a wide random layer, rho the cosine of x and x'. [prior, arc-cosine]

    (sqrt(1 - rho^2) + rho (pi - arccos rho)) / pi: 1/pi for orthogonal inputs, where a gated layer has 0.
    ValueError for rho outside [-1, 1].

    >>> relu_key_cosine(0.0)
    tensor(0.3183, dtype=torch.float64)
    """
    check_within("rho", rho, -1, 1)
    rho = torch.as_tensor(rho, dtype=torch.float64)
    return ((1 - rho**2).sqrt() + rho * (math.pi - rho.acos())) / math.pi


def share_written(weight_std: float, write_rms: float, bits: int = 8) -> float:
    """Share of weights that change when a write is added and rounded to ``bits`` significant bits: bf16 has 8. [ours]

    Weights and writes are Gaussian, of these sizes. A weight in [2^e, 2^(e+1)) lies 2^(e+1-bits) from its neighbours,
    so a write of less than half of that is lost. Sum over the binades of P(weight there) P(|write| > 2^(e-bits)); the
    powers of two themselves, one weight in 2^(bits-1), whose lower neighbour is half as far, count like the others.
    ValueError unless both sizes are positive and bits >= 2.

    >>> f"{share_written(0.02, 1e-5 / (2560 * 9728) ** 0.5):.1e}"
    '2.4e-05'
    """
    check_positive("weight_std", weight_std)
    check_positive("write_rms", write_rms)
    check_count("bits", bits, 2)
    e = torch.arange(-126, 20, dtype=torch.float64)
    below = lambda x: 1 - erfc(x / math.sqrt(2))  # noqa: E731  P(|standard normal| < x)
    there = below(2 ** (e + 1) / weight_std) - below(2**e / weight_std)
    return float((there * erfc(2 ** (e - bits) / write_rms / math.sqrt(2))).sum())


def crossover(d: int, h: int, read_is_paid: bool = True) -> float:
    """Tokens below which the attention form takes fewer flops than the state form. [ours]

    The masked attention form takes n^2 (d + h), the state form 2ndh to write and as many to read; the reading replaces
    that of the static down-projection, so it may count as paid. ValueError unless d, h >= 1.

    >>> round(crossover(2560, 9728))  # Qwen3-4B
    4053
    """
    check_count("d", d)
    check_count("h", h)
    return (2 if read_is_paid else 4) * d * h / (d + h)


def extra_flops(d: int, h: int, taps: int = 5) -> float:
    """What a memory adds to one gated MLP, as a share of its 6dh flops per token: 1/3 + d/(3h) + taps/(3h). [ours]

    Projection of the target 2 d^2, convolution 2 taps d, write 2dh; the read replaces the down-projection.
    ValueError unless d, h, taps >= 1.

    >>> round(extra_flops(2560, 9728), 2)  # Qwen3-4B
    0.42
    """
    for name, value in (("d", d), ("h", h), ("taps", taps)):
        check_count(name, value)
    return (2 * d * d + 2 * taps * d + 2 * d * h) / (6 * d * h)


def clipped_change(tau: float, writes: int, weight_std: float, d: int) -> float:
    """Most that ``writes`` writes of Frobenius norm <= tau move a layer's output, as a share of its size. [ours]

    |Delta W z| <= writes tau |z|, while |W z| is about weight_std sqrt(d) |z|. ValueError for what is not positive.

    >>> f"{clipped_change(1e-5, 32, 0.02, 2560):.1e}"
    '3.2e-04'
    """
    for name, value in (("tau", tau), ("weight_std", weight_std)):
        check_positive(name, value)
    check_count("writes", writes)
    check_count("d", d)
    return writes * tau / (weight_std * math.sqrt(d))


# Who reads whom -------------------------------------------------------------------------------------------------------


def chunk_of(n: int, chunk: int) -> Int[Tensor, "n"]:
    """floor(t / C) for t = 0 .. n - 1; ValueError unless n, C >= 1."""
    check_count("n", n)
    check_count("chunk", chunk)
    return torch.arange(n) // chunk


def lag(n: int, chunk: int) -> Int[Tensor, "n"]:
    """(t mod C) + 1: the tokens of the own chunk up to t, which are not written when t reads. [ours]

    >>> lag(5, 2)
    tensor([1, 2, 1, 2, 1])
    """
    return torch.arange(n) - chunk * chunk_of(n, chunk) + 1


def tapped(n: int, chunk: int, behind: int = 2, ahead: int = 2, crossing: bool = False) -> Bool[Tensor, "n n"]:
    """Whether the value of token t is made of the input at s: -behind <= s - t <= ahead, in one chunk unless crossing.

    ValueError unless behind, ahead >= 0.
    """
    check_count("behind", behind, 0)
    check_count("ahead", ahead, 0)
    chunks, at = chunk_of(n, chunk), torch.arange(n)
    apart = at.unsqueeze(0) - at.unsqueeze(1)
    near = (apart >= -behind) & (apart <= ahead)
    return near if crossing else near & (chunks.unsqueeze(0) == chunks.unsqueeze(1))


def reach(n: int, chunk: int, behind: int = 2, ahead: int = 2, crossing: bool = False) -> Bool[Tensor, "n n"]:
    """Whether the memory's answer at token n depends on the input at s through some value that it reads. [ours]

    An entry above the diagonal is a leak; ``leaks`` counts them.

    >>> reach(4, 2, behind=0, ahead=2, crossing=True).int()[2]  # token 2 sees token 3, which is its label
    tensor([1, 1, 1, 1], dtype=torch.int32)
    """
    read, made = read_mask(n, chunk), tapped(n, chunk, behind, ahead, crossing)
    return (read.double() @ made.double()) > 0


def leaks(n: int, chunk: int, behind: int = 2, ahead: int = 2, crossing: bool = False) -> int:
    """How many pairs (token, later input that it depends on) there are; 0 is strict causality.

    >>> leaks(32, 8), leaks(32, 8, ahead=1, crossing=True), leaks(32, 8, ahead=2, crossing=True)
    (0, 0, 3)
    """
    return int(reach(n, chunk, behind, ahead, crossing).triu(1).sum())


def is_bound(pair: int, query: int, chunk: int) -> bool:
    """Whether a query reads the pair (x_pair, x_pair+1) written with the next token as value. [ours]

    Both tokens must stand in one chunk, which must lie before the query's: a pair across an edge is never written.

    >>> is_bound(0, 2, 2), is_bound(1, 4, 2), is_bound(2, 3, 4)
    (True, False, False)
    """
    check_count("chunk", chunk)
    return pair // chunk == (pair + 1) // chunk < query // chunk
