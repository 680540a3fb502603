"""Away from the training ecology: mixing in a new one, and what a merged pair pays (TE-7, 8).

alpha_star    share of the new ecology from which sigma^2 of the pair exceeds epsilon
alpha_split   share from which telling the pair apart lowers J_beta
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..data.ecologies import random_ecology, simplex
from ..model.codes import split_cost, split_gain
from ..model.deployment import injection_threshold, pair_bound, split_injection_threshold
from ..model.ecology import FiniteEcology, mix, rounding_bound
from ..model.partitions import cells, normal_form, set_partitions


@dataclass(frozen=True, kw_only=True)
class Injection(Experiment):
    """TE-7: pairs of worlds that the base ecology barely tells apart and a new one tells apart, mixed at each share.

    Two worlds in two ecologies; both levels lie a share of the way from one to the other: epsilon for sigma^2, beta h
    for the gain. Rows: replicate, alpha, sigma2 and gain (of the mixture), linear2 and linear (the straight lines),
    epsilon, level (beta h), alpha_star, alpha_split, gap (of both straight lines), bound, crossing (|sigma^2 - epsilon|
    at alpha_star and |J of merged less J of split| at alpha_split), before and after (J of merged less J of split a
    little below and above alpha_split), wrong (the price of this pair, and a level at which both shares agree for it,
    used for an independent pair: J of split less J of merged at the mean of its shares where it counts as resolved
    before the split pays, else 0).
    """

    replicas: int = 40
    alphas: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

    tiny: ClassVar = {"replicas": 8, "alphas": (0.0, 0.5, 1.0)}
    deterministic: ClassVar = {"alpha_star": 1e-9, "alpha_split": 1e-9}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return pd.concat([self.one(seed, replicate) for replicate in range(self.replicas)], ignore_index=True)

    def ecologies(self, seed: int, replicate: int, which: str) -> tuple[FiniteEcology, FiniteEcology]:
        """A base that mixes the two laws nearly, and a new ecology that does not; two worlds, the same prior."""
        generator = stream(seed, "injection", which, replicate)
        shared, apart = simplex((1, 2, 4), generator), simplex((2, 2, 4), generator)
        prior, near = np.array([0.4, 0.6]), simplex((2, 2, 4), generator)
        base = FiniteEcology(prior, simplex((2,), generator), 0.9 * shared + 0.1 * near)
        return base, FiniteEcology(prior, simplex((2,), generator), apart)

    def one(self, seed: int, replicate: int) -> pd.DataFrame:
        base, new = self.ecologies(seed, replicate, "pair")
        low, high = (float(each.hellinger()[0, 1]) for each in (base, new))
        epsilon = low + 0.3 * (high - low)
        first, last = (split_gain(each, [0], [1]) for each in (base, new))
        beta = (first + 0.4 * (last - first)) / split_cost(base, [0], [1])
        star = injection_threshold(base, new, (0, 1), epsilon)
        split = split_injection_threshold(base, new, [0], [1], beta)
        found = []
        for alpha in self.alphas:
            mixture = mix(base, new, alpha)
            sigma2, gain = float(mixture.hellinger()[0, 1]), split_gain(mixture, [0], [1])
            straight = (low + alpha * (high - low), first + alpha * (last - first))
            found.append(
                {"alpha": alpha, "sigma2": sigma2, "gain": gain, "linear2": straight[0], "linear": straight[1]}
            )
            found[-1]["gap"] = max(abs(sigma2 - straight[0]), abs(gain - straight[1]))
        crossing = abs(float(mix(base, new, star).hellinger()[0, 1]) - epsilon)
        row = {
            "epsilon": epsilon,
            "beta": beta,
            "level": beta * split_cost(base, [0], [1]),
            "bound": rounding_bound(new),
        }
        row |= {"alpha_star": star, "alpha_split": split}
        row["crossing"] = max(crossing, abs(saving(base, new, split, beta)))
        row["before"], row["after"] = (saving(base, new, split + shift, beta) for shift in (-1e-3, 1e-3))
        row["wrong"] = self.wrong(seed, replicate, base, new, beta)
        return pd.DataFrame(found).assign(replicate=replicate, **row)

    def wrong(self, seed: int, replicate: int, base: FiniteEcology, new: FiniteEcology, beta: float) -> float:
        """The level that is right for this pair of ecologies, used for another: by how much the merge is still better
        half way between the two shares; 0 where the level errs on the other side or does not apply."""
        share = split_injection_threshold(base, new, [0], [1], beta)
        epsilon = float(mix(base, new, share).hellinger()[0, 1])  # at this level the two shares of the pair agree
        base, new = self.ecologies(seed, replicate, "other")
        try:
            star = injection_threshold(base, new, (0, 1), epsilon)
            split = split_injection_threshold(base, new, [0], [1], beta)
        except ValueError:
            return 0.0
        return max(0.0, -saving(base, new, (star + split) / 2, beta)) if star < split else 0.0


def saving(base: FiniteEcology, new: FiniteEcology, alpha: float, beta: float) -> float:
    """J_beta of the merged pair less that of the split pair, in the mixture: positive where the split pays."""
    mixture = mix(base, new, alpha)
    return mixture.objective([0, 0], beta) - mixture.objective([0, 1], beta)


@dataclass(frozen=True, kw_only=True)
class OffEcology(Experiment):
    """TE-8: the simplest optimum of one ecology on another that tells a merged pair apart. A row is one merged pair of
    worlds: replicate, size (worlds in its cell), excess (of the code on the second ecology), cell (what its cell adds
    to it), pair (the bound), ratio (bound over excess), own (bound over what its cell adds: 1 for a cell of two),
    training (excess on the first ecology).
    """

    n: int = 6
    replicas: int = 60

    tiny: ClassVar = {"replicas": 10}
    deterministic: ClassVar = {"excess": 1e-9, "pair": 1e-9}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found, partitions = [], set_partitions(self.n)
        partitions = partitions[partitions.max(axis=1) < self.n - 1]  # something must be merged
        for replicate in range(self.replicas):
            classes = partitions[(replicate * 37 + 5) % len(partitions)]
            generator = stream(seed, "off", replicate)
            first = random_ecology(self.n, 3, 4, generator, classes=classes)
            second = FiniteEcology(first.prior, simplex((3,), generator), simplex((self.n, 3, 4), generator, 0.1))
            code = first.quotient()
            training, excess = first.js_excess(code), second.js_excess(code)
            for cell in (each for each in cells(code) if each.size > 1):
                alone = np.arange(self.n)
                alone[cell] = cell[0]
                adds = second.js_excess(normal_form(alone))
                for place, u in enumerate(cell):
                    for w in cell[place + 1 :]:
                        pair = pair_bound(second, int(u), int(w))
                        row = {"replicate": replicate, "size": cell.size, "excess": excess, "cell": adds, "pair": pair}
                        found.append(row | {"ratio": pair / excess, "own": pair / adds, "training": training})
        return pd.DataFrame(found)
