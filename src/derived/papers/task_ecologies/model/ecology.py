"""Finite task ecologies: worlds, contexts, distributions of the next token, and the exact loss of a code of the world.

symbol       name        meaning                                                                  axes
pi           prior       weight of each world, positive                                           (n,)
D            contexts    distribution of the context, in all worlds or in each                    (C,) or (n, C)
P_w(.|c)     laws        distribution of the next token in world w after context c                (n, C, V)
A            joint       pi(w) D_w(c), the weight of world and context together                   (n, C)
p            labels      cell of each world: the code                                             (n,)
H(Y|C,W)     floor       sum A H(P_w(.|c)): what no code can undercut                             nats
L*(p)        loss        least cross-entropy of a reader who sees the cell and the context        nats
Delta(p)     excess      L*(p) - floor = sum_(x,c) Pr(x,c) JS of the distributions in the cell    nats

The paper has contexts independent of the world; a table (n, C) drops that, and each formula below is right for both.
A text of R letters is one ecology for each letter, with the letters before it as its context (``letter``).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, kl_div, xlogy

from derived.lab.checks import check_count, check_positive, check_within

from .partitions import Labels, normal_form

ROUNDING = 1e-9  # a row that sums to one but for this is taken as given
SAME = 1e-12  # two distributions that differ by less in every token are equal
FREE = 1e-12  # an excess below is none: rounding leaves 1e-15


def _check_sums(name: str, rows: np.ndarray, rounding: float) -> None:
    off = np.abs(rows.sum(axis=-1) - 1)
    if (off > rounding).any():
        place = np.unravel_index(off.argmax(), off.shape)
        total, where = rows.sum(axis=-1)[place], [int(each) for each in place] or ""
        raise ValueError(f"{name}{where} sums to {total:.12g}; give probabilities that sum to 1")


def _eps(rows: ArrayLike) -> float:
    """The rounding of one number of these, by its dtype; of lists and whole numbers that of float64."""
    dtype = str(getattr(rows, "dtype", "float64")).removeprefix("torch.")
    return {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24}.get(dtype, 2.0**-53)


def _float64(rows: ArrayLike) -> np.ndarray:
    """A copy; NumPy has no bfloat16, so torch's tensors are widened by torch."""
    return np.array(rows.detach().cpu().double().numpy() if hasattr(rows, "detach") else rows, dtype=float)


def _terms(rows: ArrayLike) -> int:
    """How many numbers are summed; each was rounded once."""
    shape = rows.shape if hasattr(rows, "shape") else np.shape(rows)
    return shape[-1] if shape else 1


@dataclass(frozen=True, eq=False)
class FiniteEcology:
    """A prior over n worlds, a distribution of C contexts, and of the next token in each world and context.

    What sums to one but for rounding in its dtype is divided by its sum, so the softmax of a model is welcome;
    ``from_counts`` takes counts. ValueError for distributions that are negative or do not sum to one, worlds of weight
    zero, and shapes that do not fit. A context listed twice counts with the sum of its weights. [paper, section 2;
    contexts (n, C): ours]

    >>> coins = FiniteEcology([0.5, 0.5], [1.0], [[[0.9, 0.1]], [[0.1, 0.9]]])
    >>> round(coins.bayes_loss([0, 0]), 4), round(coins.entropy_floor(), 4), round(coins.js_excess([0, 0]), 4)
    (0.6931, 0.3251, 0.3681)
    """

    prior: ArrayLike
    contexts: ArrayLike
    laws: ArrayLike

    def __post_init__(self) -> None:
        names = ("prior", "contexts", "laws")
        rounding = {name: max(ROUNDING, _eps(getattr(self, name)) * _terms(getattr(self, name))) for name in names}
        for name in names:
            object.__setattr__(self, name, _float64(getattr(self, name)))
        if self.prior.ndim != 1 or self.laws.ndim != 3 or self.contexts.ndim not in (1, 2):
            shapes = f"prior {self.prior.shape}, contexts {self.contexts.shape}, laws {self.laws.shape}"
            raise ValueError(f"{shapes}; give (n,), (C,) or (n, C), and (n, C, V)")
        n, C, _ = self.laws.shape
        if self.prior.size != n or self.contexts.shape not in ((C,), (n, C)):
            raise ValueError(
                f"laws of {n} worlds in {C} contexts, but prior {self.prior.shape} and contexts {self.contexts.shape}"
            )
        try:
            check_positive("prior", self.prior)
        except ValueError as error:
            raise ValueError(f"{error}; leave a world of weight zero out") from None
        check_within("contexts", self.contexts, 0, 1)
        check_within("laws", self.laws, 0, 1)
        for name in names:
            rows = getattr(self, name)
            _check_sums(name, rows, rounding[name])
            if rounding[name] > ROUNDING:
                object.__setattr__(self, name, rows / rows.sum(axis=-1, keepdims=True))

    @classmethod
    def from_counts(cls, counts: ArrayLike) -> "FiniteEcology":
        """The ecology of observed texts: how often token y followed context c in world w, (n, C, V).

        The prior is the share of each world, and each world has its own contexts; the distribution of a context that a
        world never met is uniform, and counts for nothing. ValueError for negative counts and worlds without any.

        >>> FiniteEcology.from_counts([[[3, 1]], [[0, 4]]]).laws.tolist()
        [[[0.75, 0.25]], [[0.0, 1.0]]]
        """
        counts = np.asarray(counts, dtype=float)
        check_within("counts", counts, 0, np.inf)
        met = counts.sum(axis=-1)
        check_positive("counts of each world", met.sum(axis=-1))
        whole = met[..., None]
        laws = np.divide(counts, whole, out=np.full_like(counts, 1 / counts.shape[-1]), where=whole > 0)
        return cls(met.sum(axis=-1) / met.sum(), met / met.sum(axis=-1, keepdims=True), laws)

    @property
    def num_worlds(self) -> int:
        """n."""
        return self.prior.size

    @cached_property
    def joint(self) -> np.ndarray:
        """A(w, c) = pi(w) D_w(c), (n, C)."""
        return self.prior[:, None] * np.broadcast_to(self.contexts, self.laws.shape[:2])

    @cached_property
    def weighted(self) -> np.ndarray:
        """A(w, c) P_w(y|c), the joint distribution of world, context and next token, (n, C, V)."""
        return self.joint[..., None] * self.laws

    def cells_of(self, labels: Labels) -> np.ndarray:
        """Which world lies in which cell, (k, n) of zeros and ones; ValueError for a partition of another set."""
        labels = normal_form(labels)
        if labels.size != self.num_worlds:
            raise ValueError(f"a partition of {labels.size} worlds; this ecology has {self.num_worlds}")
        return (labels == np.arange(labels.max() + 1)[:, None]).astype(float)

    def entropy_floor(self) -> float:
        """H(Y|C,W) = sum_(w,c) A(w,c) H(P_w(.|c)), in nats."""
        return float((self.joint * entr(self.laws).sum(axis=-1)).sum())

    def table(self, labels: Labels) -> np.ndarray:
        """T[x, c, y] = sum_(w in cell x) A(w,c) P_w(y|c): cell, context and next token jointly, (k, C, V)."""
        return np.tensordot(self.cells_of(labels), self.weighted, axes=1)

    def bayes_loss(self, labels: Labels) -> float:
        """L*(p) = H(Y|C,X), the least loss of a reader of cell and context: -sum T ln T + sum T_(xc.) ln T_(xc.).

        The first route of the theorem: by the joint table, without any Jensen-Shannon divergence.
        """
        table = self.table(labels)
        whole = table.sum(axis=-1)
        return float(xlogy(whole, whole).sum() - xlogy(table, table).sum())

    def decoder(self, labels: Labels) -> np.ndarray:
        """q*(.|x,c), the cell mixture, (k, C, V); uniform in a context that the cell never meets."""
        table = self.table(labels)
        whole = table.sum(axis=-1, keepdims=True)
        return np.divide(table, whole, out=np.full_like(table, 1 / table.shape[-1]), where=whole > 0)

    def loss(self, labels: Labels, decoder: np.ndarray) -> float:
        """L(p, q), the cross-entropy of any decoder q (k, C, V), by summing over worlds, contexts and tokens."""
        labels = normal_form(labels)
        decoder = np.asarray(decoder, dtype=float)
        expected = (int(labels.max()) + 1, *self.laws.shape[1:])
        if labels.size != self.num_worlds or decoder.shape != expected:
            raise ValueError(f"a decoder {decoder.shape} for {labels.size} worlds; give {expected}")
        check_within("decoder", decoder, 0, 1)
        _check_sums("decoder", decoder, ROUNDING)
        return float(-xlogy(self.weighted, decoder[labels]).sum())

    def js_excess(self, labels: Labels) -> float:
        """Delta(p) = sum_(w,c) A(w,c) KL(P_w(.|c) || cell mixture), the excess over the floor, in nats.

        A sum of terms that are not negative: small excesses keep their digits.
        """
        mixture = self.decoder(labels)[normal_form(labels)]
        return float(kl_div(self.weighted, self.joint[..., None] * mixture).sum())

    def complexity(self, labels: Labels) -> float:
        """H(p(W)), the entropy of the cell, in nats."""
        return float(entr(self.cells_of(labels) @ self.prior).sum())

    def objective(self, labels: Labels, beta: float) -> float:
        """J_beta(p) = L*(p) + beta H(p(W))."""
        return self.bayes_loss(labels) + beta * self.complexity(labels)

    def quotient(self) -> np.ndarray:
        """The training-equivalence classes as labels: worlds that agree wherever the context is possible.

        Where contexts know the world, two worlds are compared in the contexts that both can meet, which is no
        equivalence relation in general: ValueError then.
        """
        if self.contexts.ndim == 2:
            raise ValueError("contexts that know the world have no quotient: being told apart is not transitive there")
        met = self.contexts > 0
        apart = np.abs(self.laws[:, None] - self.laws[None])[:, :, met].max(axis=(-2, -1), initial=0.0)
        return normal_form((apart <= SAME).argmax(axis=1))


def rounding_bound(ecology: FiniteEcology, sums: int = 4) -> float:
    """What rounding allows the gap of two numbers that take ``sums`` sums of x ln x over the whole table, in nats.

    u (terms + worlds + 4) (ln terms + 1) for each, u = 2^-53: a sum of so many terms whose sizes sum to at most
    ln(terms) + 1, of arguments that are sums over worlds.
    """
    terms = ecology.laws.size
    return sums * 2.0**-53 * (terms + ecology.num_worlds + 4) * (np.log(terms) + 1)


def mix(first: FiniteEcology, second: FiniteEcology, alpha: float) -> FiniteEcology:
    """(1 - alpha) first + alpha second: the same worlds, the contexts of both, with weights (1 - alpha) D and alpha D'.

    ValueError for other worlds, another vocabulary, or alpha outside [0, 1]. [paper, Prop. 15]

    >>> blind = FiniteEcology([0.5, 0.5], [1.0], [[[0.5, 0.5]], [[0.5, 0.5]]])
    >>> seeing = FiniteEcology([0.5, 0.5], [1.0], [[[0.9, 0.1]], [[0.1, 0.9]]])
    >>> mix(blind, seeing, 0.1).quotient(), blind.quotient()
    (array([0, 1]), array([0, 0]))
    """
    check_within("alpha", alpha, 0, 1)
    if not np.array_equal(first.prior, second.prior) or first.laws.shape[-1] != second.laws.shape[-1]:
        raise ValueError("two ecologies of other worlds or another vocabulary; give the same prior and tokens")
    if first.contexts.ndim == 2 or second.contexts.ndim == 2:
        raise ValueError("an ecology's contexts know the world; give one law of contexts (C,)")
    weights = [(1 - alpha) * first.contexts, alpha * second.contexts]
    return FiniteEcology(first.prior, np.concatenate(weights), np.concatenate([first.laws, second.laws], axis=1))


def repeated(laws: ArrayLike, letters: int) -> np.ndarray:
    """The distribution of so many letters drawn from ``laws`` (n, V) in one and the same world, (n, V, ..., V).

    >>> repeated([[0.5, 0.5], [1.0, 0.0]], 2).tolist()
    [[[0.25, 0.25], [0.25, 0.25]], [[1.0, 0.0], [0.0, 0.0]]]
    """
    check_count("letters", letters)
    laws = np.asarray(laws, dtype=float)
    found = laws
    for _ in range(letters - 1):
        found = found[..., None] * laws.reshape(len(laws), *[1] * (found.ndim - 1), -1)
    return found


def letter(prior: ArrayLike, texts: ArrayLike, before: int) -> FiniteEcology:
    """The ecology of one letter of a text, its context the ``before`` letters in front of it; ``texts`` (n, V, ..., V)
    holds the probability of every text in every world. ValueError where no letter is left.

    >>> coins = repeated([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], 3)
    >>> [round(letter([1 / 3] * 3, coins, r).js_excess([0, 0, 0]), 3) for r in range(3)]
    [0.462, 0.22, 0.155]
    """
    texts = np.asarray(texts, dtype=float)
    if not 0 <= before < texts.ndim - 1:
        raise ValueError(f"before = {before} in texts of {texts.ndim - 1} letters; give 0 to {texts.ndim - 2}")
    n, V = texts.shape[:2]
    joint = texts.reshape(n, V**before, V, -1).sum(axis=-1)
    mass = joint.sum(axis=-1, keepdims=True)
    _check_sums("texts", mass[..., 0], ROUNDING)
    return FiniteEcology(
        prior,
        (mass / mass.sum(axis=1, keepdims=True))[..., 0],
        np.divide(joint, mass, out=np.full_like(joint, 1 / V), where=mass > 0),
    )
