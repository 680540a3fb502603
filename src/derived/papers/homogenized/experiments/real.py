"""Trained models and their untrained twins: which clock do real shapes keep, and do trained tokens collapse?

m is the mean overlap of different tokens, and m_theory what ``hot_block`` makes of the tokens that enter: fresh weights
in every layer, infinite width, hot attention.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.real import models, texts
from derived.lab.rng import stream

from ..model.chain import overlaps
from ..model.heads import equiangular_tokens, layer_step, matched_law, normalise
from ..model.overlaps import hot_block
from .chains import off_diagonal


@dataclass(frozen=True, kw_only=True)
class OneLayer(Experiment):
    """The layers until orthogonal tokens have the overlap 1/2: fresh weights in every layer, or one layer for all,
    which is then the same for all steps.

    Rows: weights, eta, replicate, layers (the first crossing, between two layers by a straight line; missing where the
    overlap stayed below).
    """

    d: int = 64
    n: int = 8
    logit_std: float = 1.0
    etas: tuple[float, ...] = (0.2, 0.1, 0.05)
    replicates: int = 48

    tiers: ClassVar = {"ci": {"etas": (0.2, 0.1)}, "cpu": {}}
    tiny: ClassVar = {"d": 16, "n": 4, "replicates": 4, "etas": (0.4, 0.2)}

    def conditions(self) -> list[dict]:
        return [{"weights": weights, "eta": eta} for weights in ("fresh", "shared") for eta in self.etas]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        weights, eta = condition["weights"], condition["eta"]
        most = round(12 / eta**2 if weights == "fresh" else 60 / eta)
        law, g = matched_law(self.d, self.logit_std), stream(seed, "one layer", weights, device=device)
        X = equiangular_tokens(self.n, self.d, 0.0, replicas=self.replicates).to(device, dtype)
        heads, reached, before = None, np.full(self.replicates, np.nan), np.zeros(self.replicates)
        for layer in range(1, most + 1):
            if heads is None or weights == "fresh":
                heads = law.draw(g, (self.replicates, 1), beta=1.0, device=device, dtype=dtype)
            X = layer_step(X, eta, heads)
            now = off_diagonal(overlaps(X)).mean(dim=-1).cpu().numpy()
            crossing = np.isnan(reached) & (now >= 0.5)
            reached[crossing] = layer - 1 + ((0.5 - before) / (now - before))[crossing]
            before = now
            if not np.isnan(reached).any():
                break
        return rows({"replicate": range(self.replicates)}, {"layers": reached})


def mean_overlap(states: Tensor) -> float:
    """The mean overlap of different tokens (1, n, d)."""
    return off_diagonal(overlaps(normalise(states[0].double()))).mean().item()


def predicted(states: Tensor, blocks: int, spread: float, inner: int) -> list[float]:
    """The mean overlap after each block, from the tokens (1, n, d) that enter; ``spread`` is that of a weight."""
    gram, variance = overlaps(normalise(states[0].double())), spread**2 * states.shape[-1]
    found = [off_diagonal(gram).mean().item()]
    for _ in range(blocks):
        gram = hot_block(gram, variance**2, spread**2 * inner, variance)
        found.append(off_diagonal(gram).mean().item())
    return found


@dataclass(frozen=True, kw_only=True)
class Sentences(Experiment):
    """A BERT on passages of novels, trained and as it was before its training, a draw of weights for each passage.

    Rows: weights (trained, fresh), replicate (a passage), layer, m, m_theory (for fresh weights).
    """

    model: str = "minilm"
    passages: int = 64

    needs: ClassVar = ("minilm", "austen")
    tiers: ClassVar = {"ci": {"passages": 8}, "cpu": {}}
    tiny: ClassVar = {"passages": 2}
    deterministic: ClassVar = {"m_theory": 1e-3}

    def conditions(self) -> list[dict]:
        return [{"weights": weights} for weights in ("trained", "fresh")]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        trained, found = models.load(self.model), []
        for index, text in enumerate(passages(self.passages)):
            one = trained
            if condition["weights"] == "fresh":
                one = models.fresh(trained, stream(seed, "untrained", index))
            states = one.model(one.tokens(text), output_hidden_states=True).hidden_states
            found.append(_courses(states, one.model.config, condition["weights"] == "fresh"))
        return _rows(found)


def passages(count: int) -> list[str]:
    """Paragraphs of 300 to 600 characters, as many from each novel of Jane Austen."""
    novels = texts.austen()
    share = -(-count // len(novels))
    each = [[part for part in novel.split("\n\n") if 300 < len(part) < 600][5 : 5 + share] for novel in novels.values()]
    return [part.replace("\n", " ") for group in zip(*each, strict=True) for part in group][:count]


@dataclass(frozen=True, kw_only=True)
class Reactions(Experiment):
    """The ALBERT of RXNMapper, which passes twelve times through one shared layer, on the reactions of its own tests:
    trained; with the trained embeddings and a fresh layer (grafted); before its training (shared); and with a layer of
    its own, as fresh, for every pass.

    Rows: weights (trained, grafted, shared, fresh), draw, replicate (a reaction), layer (a pass), m, m_theory (fresh).
    """

    model: str = "rxnmapper"
    draws: int = 24

    needs: ClassVar = ("rxnmapper",)
    tiers: ClassVar = {"ci": {"draws": 2}, "cpu": {}}
    tiny: ClassVar = {"draws": 1}
    deterministic: ClassVar = {"m_theory": 1e-3}

    def conditions(self) -> list[dict]:
        untrained = ("grafted", "shared", "fresh")
        arms = [{"weights": weights, "draw": draw} for weights in untrained for draw in range(self.draws)]
        return [{"weights": "trained", "draw": 0}, *arms]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        weights, draw = condition["weights"], condition["draw"]
        trained, found = models.load(self.model), []
        for index, reaction in enumerate(texts.reactions()):

            def again(layer: int, index: int = index):
                return models.fresh(trained, stream(seed, "drawn again", weights, draw, index, layer)).model.albert

            body = trained.model.albert if weights in ("trained", "grafted") else again(0)
            one = again(0) if weights == "grafted" else body
            layers = again if weights == "fresh" else lambda layer, one=one: one
            states = _passes(body, layers, trained.tokens(reaction))
            found.append(_courses(states, body.config, weights == "fresh"))
        return _rows(found)


def _passes(body, layers: Callable[[int], object], tokens: Tensor) -> list[Tensor]:
    """The tokens that enter an ALBERT, and after each pass, through the layer of ``layers(pass)``."""
    states = [body.encoder.embedding_hidden_mapping_in(body.embeddings(tokens))]
    for layer in range(body.config.num_hidden_layers):
        [shared] = layers(layer).encoder.albert_layer_groups[0].albert_layers
        after = shared(states[-1])
        states.append(after[0] if isinstance(after, tuple) else after)
    return states


def _courses(states: list[Tensor], config, fresh: bool) -> tuple[list[float], list[float]]:
    """Mean overlaps after each layer, measured, and predicted where weights are fresh."""
    theory = [np.nan] * len(states)
    if fresh:
        theory = predicted(states[0], len(states) - 1, config.initializer_range, config.intermediate_size)
    return [mean_overlap(each) for each in states], theory


def _rows(found: list[tuple[list[float], list[float]]]) -> pd.DataFrame:
    measured, theory = (np.array(each) for each in zip(*found, strict=True))
    index = {"replicate": range(measured.shape[0]), "layer": range(measured.shape[1])}
    return rows(index, {"m": measured, "m_theory": theory})
