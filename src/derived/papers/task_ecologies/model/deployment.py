"""From one ecology to another: how much of a new one must be mixed in, and what a code pays where it was not trained.

symbol        name                      meaning
epsilon       epsilon                   level of sigma^2 above which a pair counts as resolved
alpha*        injection_threshold       share of the new ecology from which sigma^2 of a pair passes epsilon
alpha_JS      split_injection_threshold share from which telling A from B lowers J_beta
-             pair_bound                (pi_1 + pi_2) E_c JS_lambda(P_1, P_2): what merging a pair costs at least

Both thresholds are of one kind, since sigma^2 and the gain G are means over contexts, hence linear in alpha; they are
different numbers, and only alpha_JS decides about the price.
"""

from derived.lab.checks import check_positive

from .codes import split_cost, split_gain
from .ecology import FiniteEcology
from .partitions import Labels


def _crossing(name: str, before: float, after: float, level: float) -> float:
    if not before <= level < after:
        raise ValueError(
            f"{name} goes from {before:.6g} to {after:.6g}, and the level is {level:.6g}: no share crosses it upwards"
        )
    return (level - before) / (after - before)


def injection_threshold(base: FiniteEcology, new: FiniteEcology, pair: tuple[int, int], epsilon: float) -> float:
    """alpha* = (epsilon - sigma_0^2) / (sigma_nu^2 - sigma_0^2), for one pair of worlds. [paper, Prop. 47]

    ValueError unless sigma_0^2 <= epsilon < sigma_nu^2.

    >>> blind = FiniteEcology([0.5, 0.5], [1.0], [[[0.5, 0.5]], [[0.5, 0.5]]])
    >>> seeing = FiniteEcology([0.5, 0.5], [1.0], [[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> injection_threshold(blind, seeing, (0, 1), 0.3)
    0.3
    """
    check_positive("epsilon", epsilon)
    before, after = (float(each.hellinger()[pair]) for each in (base, new))
    return _crossing("sigma^2 of the pair", before, after, epsilon)


def split_injection_threshold(base: FiniteEcology, new: FiniteEcology, A: Labels, B: Labels, beta: float) -> float:
    """alpha_JS = (beta h(lambda) - G_0) / (G_nu - G_0): the share from which telling A from B lowers J_beta. [ours]

    ValueError unless G_0 <= beta h(lambda) < G_nu.

    >>> blind = FiniteEcology([0.5, 0.5], [1.0], [[[0.5, 0.5]], [[0.5, 0.5]]])
    >>> seeing = FiniteEcology([0.5, 0.5], [1.0], [[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> round(split_injection_threshold(blind, seeing, [0], [1], 0.3), 12)
    0.3
    """
    check_positive("beta", beta)
    before, after = (split_gain(each, A, B) for each in (base, new))
    return _crossing("the gain of the split", before, after, beta * split_cost(base, A, B))


def pair_bound(ecology: FiniteEcology, first: int, second: int) -> float:
    """(pi_1 + pi_2) E_c JS_lambda(P_1, P_2): the excess of a code that merges two worlds, and only them. [paper, 77]

    A code whose cell holds further worlds pays at least as much.

    >>> coins = FiniteEcology([0.25, 0.25, 0.5], [1.0], [[[0.9, 0.1]], [[0.1, 0.9]], [[0.5, 0.5]]])
    >>> round(pair_bound(coins, 0, 1) - coins.js_excess([0, 0, 1]), 15)
    0.0
    """
    return float(ecology.prior[[first, second]].sum()) * split_gain(ecology, [first], [second])
