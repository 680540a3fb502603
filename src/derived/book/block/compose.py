"""Which changes of the plain block compose: every pair, and the largest sets, run forward and backward at tiny size.

composes   in one order of the classes a forward pass runs the methods of all, every number and gradient is finite, and
           the property of each still holds
replaced   in no order do all of them run: one stands where the other did
lost       all run, and a property is lost
causal     no logit depends on a token after it
idle       plain weights that no gradient reaches

``python -m derived.book.block.compose`` prints all of it as JSON for the page, which imports no torch itself.
"""

import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from inspect import isfunction

import torch
from torch import Tensor

from derived.book.block.changes import CHANGES
from derived.book.block.plain import SHAPES, VOCABULARY, Plain
from derived.book.block.properties import PROPERTIES
from derived.lab.nets import Draws
from derived.lab.rng import stream

NETWORKS, TEXTS, LENGTH = 3, 2, 12


@dataclass(frozen=True)
class Composed:
    """What became of several changes in one model; ``gaps`` by slug: how far from its property, and what is allowed."""

    slugs: tuple[str, ...]
    outcome: str
    lost: tuple[str, ...]
    causal: bool
    idle: tuple[str, ...]
    gaps: dict[str, tuple[float, float]]


def compose(slugs: Sequence[str]) -> Composed:
    """Run the changes together, in the first order that composes; else in the first one that runs all, else any."""
    ranked = {"composes": 0, "lost": 1, "replaced": 2}
    orders = [slugs, slugs[::-1]] if len(slugs) > 1 else [slugs]
    return min((_run(tuple(order)) for order in orders), key=lambda made: ranked[made.outcome])


def _run(slugs: tuple[str, ...]) -> Composed:
    kind = type("Composed", tuple(CHANGES[slug] for slug in slugs), {})
    model = _made(kind)
    ids = torch.randint(VOCABULARY, (TEXTS, LENGTH), generator=stream(0, "ids"))
    executed = _executed(model, ids)
    idle = tuple(name for name in SHAPES if getattr(model, name).grad is None)
    gaps = {slug: PROPERTIES[slug](model, ids) for slug in slugs}
    lost = tuple(slug for slug, (gap, allowed) in gaps.items() if not gap <= allowed)
    all_run = all(_code(CHANGES[slug]) <= executed for slug in slugs)
    outcome = "replaced" if not all_run else "lost" if lost else "composes"
    return Composed(slugs, outcome, lost if all_run else (), is_causal(model, ids), idle, gaps)


def _made(kind: type[Plain]) -> Plain:
    return kind(Draws(num_networks=NETWORKS, dtype=torch.float64))


def _code(change: type) -> set:
    return {each.__code__ for each in vars(change).values() if isfunction(each)}


def _executed(model: Plain, ids: Tensor) -> set:
    """The functions that run where a model is made, trained for a step, asked for a token, and bred.

    ValueError for an output or a gradient that is not finite.
    """
    ran = set()
    sys.setprofile(lambda frame, *_: ran.add(frame.f_code))
    try:
        losses = model.loss(model(ids)[:, :, :-1], ids[:, 1:])
        losses.sum().backward()
        law = model.emit(ids)
        _made(type(model)).breed(losses.detach(), stream(0, "parents"))
    finally:
        sys.setprofile(None)
    numbers = [losses, law, *(weight.grad for weight in model.parameters() if weight.grad is not None)]
    if not all(bool(torch.isfinite(each).all()) for each in numbers):
        raise ValueError(f"{[each.__name__ for each in type(model).__bases__]}: a number is not finite")
    return ran


def is_causal(model: Plain, ids: Tensor) -> bool:
    """Whether the logits before the last token stay when it changes."""
    other = ids.clone()
    other[:, -1] = (other[:, -1] + 1) % VOCABULARY
    gap = (model(ids) - model(other))[:, :, :-1].abs().max().item()
    return gap <= 1e3 * torch.finfo(torch.float64).eps


def largest(pairs: dict[frozenset[str], Composed]) -> list[Composed]:
    """The largest sets of changes of which every two compose, each run as one model."""
    for size in range(len(CHANGES), 0, -1):
        found = [
            each
            for each in itertools.combinations(CHANGES, size)
            if all(pairs[frozenset(two)].outcome == "composes" for two in itertools.combinations(each, 2))
        ]
        if found:
            return [compose(each) for each in found]
    return []


def table() -> dict[str, list[dict]]:
    """Each change alone, every pair, and the largest sets."""
    alone = [compose((slug,)) for slug in CHANGES]
    pairs = {frozenset(two): compose(two) for two in itertools.combinations(CHANGES, 2)}
    parts = {"alone": alone, "pairs": list(pairs.values()), "largest": largest(pairs)}
    return {name: [asdict(each) for each in found] for name, found in parts.items()}


if __name__ == "__main__":
    print(json.dumps(table()))
