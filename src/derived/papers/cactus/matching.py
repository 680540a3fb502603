"""Rules by name and knob, and knobs that are set to accept equally often.

symbol   name    meaning                                             axes
p, q     p, q    distributions of draft and verifier at a position   (pairs, V)
A        target  mean acceptance rate that a knob is set to          scalar
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from .model.divergences import bisected
from .model.exact import acceptance_rate
from .model.rules import Cactus, Interp, Lenience, Mentored, Rule, TopK, Typical

#: The rules that are set to Cactus' acceptance, each with the range of its knob, least accepting end first.
KNOBS = {
    "cactus": (0.0, 50.0),
    "interp": (0.0, 1.0),
    "interp inside": (0.0, 1.0),
    "lenience": (1.0, 1e-6),
    "mentored": (0.0, 20.0),
    "tas": (0.99, 1e-6),
}
RIVALS = ("interp", "lenience", "mentored", "tas", "topk")


def rule_of(name: str, knob: float) -> Rule:
    """The rule of one knob; typical acceptance has alpha = sqrt(epsilon), as in the authors' code. [repo]

    "interp inside" is interpolation that keeps no draft with q_n = 0.
    """
    match name:
        case "interp inside":
            return Interp(knob, inside=True)
        case "tas":
            return Typical(knob, knob**0.5)
        case "topk":
            return TopK(int(knob))
    return {"cactus": Cactus, "interp": Interp, "lenience": Lenience, "mentored": Mentored}[name](knob)


def match(name: str, p: Float[Tensor, "pairs V"], q: Float[Tensor, "pairs V"], target: float) -> float:
    """The knob whose mean acceptance rate over the pairs is the target, or as near to it as the rule comes.

    Every rule accepts more as its knob moves along its range, so the interval is halved (lenience and typical
    acceptance on a logarithmic scale); top-k takes the nearest of its V values.
    """

    def accepts(knob: float) -> float:
        return acceptance_rate(p, q, rule_of(name, knob)).mean().item()

    if name == "topk":
        return min(range(1, p.shape[-1] + 1), key=lambda k: abs(accepts(k) - target))
    first, last = KNOBS[name]
    geometric = first > last

    def knob(place: Tensor) -> float:
        return math.exp(place) if geometric else float(place)

    ends = torch.tensor([math.log(first), math.log(last)] if geometric else [first, last], dtype=torch.float64)
    places = bisected(lambda place: torch.tensor(accepts(knob(place)) < target), *ends, halvings=25)
    return min(map(knob, places), key=lambda each: abs(accepts(each) - target))
