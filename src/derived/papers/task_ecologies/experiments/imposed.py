"""What a network's own code separates, trained or not, and what a code imposed on it lets it reach."""

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.ecologies import random_ecology
from ..model.ecology import FiniteEcology
from ..model.gpt import GPTSize, MicroGPT, output_distances, text_losses
from ..model.partitions import set_partitions
from .fits import build, falling, fit

EQUAL = 1e-12  # what rounding may part two outputs by that one function makes of one input, at two places of a batch


@dataclass(frozen=True, kw_only=True)
class Frozen(Experiment):
    """TE-13.b, G4: fixed networks at random weights, asked what they tell apart. Each world shows itself as a random
    text of ``shown`` letters ("distinct"), or all show the same one ("same"); contexts are random texts before it.

    "dense" and "experts" are one function of the input; "adapted" adds to the weights one gradient step per world on a
    text of its own, and then reads the same text. Rows: network, observed, replicate, pair, l1 (the largest L1 distance
    of two worlds' outputs over the contexts), own_excess (KL of the network from random laws, mean over worlds and
    contexts: its own loss less the floor), code_excess (of its code: 0 where every pair is separated).
    """

    replicates: int = 10
    worlds: int = 8
    contexts: int = 20
    before: int = 8
    shown: int = 4
    step: float = 0.1

    tiny: ClassVar = {"replicates": 2, "worlds": 4, "contexts": 5}
    dtype: ClassVar = torch.float64

    def conditions(self) -> list[dict]:
        cases = [("dense", "distinct"), ("dense", "same"), ("experts", "distinct"), ("experts", "same")]
        return [{"network": network, "observed": observed} for network, observed in [*cases, ("adapted", "same")]]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        size = GPTSize(experts=4 if condition["network"] == "experts" else 0)
        model = build(size, self.replicates, seed, device, dtype)
        inputs = self.inputs(condition["observed"], seed, device)
        ecology = random_ecology(self.worlds, self.contexts, size.vocabulary, stream(seed, "frozen laws"))
        if condition["network"] == "adapted":
            laws = torch.stack([self.adapted(model, w, inputs[w], seed, device) for w in range(self.worlds)], dim=1)
        else:
            laws = self.laws(model, inputs.flatten(0, 1)).unflatten(1, inputs.shape[:2])
        first, second = map(list, zip(*combinations(range(self.worlds), 2), strict=True))
        l1 = output_distances(laws[:, first], laws[:, second])  # (replicates, pairs)
        columns = {"l1": l1, "own_excess": self.own_excess(ecology, laws), "code_excess": self.of_code(ecology, laws)}
        pairs = [f"{i}-{j}" for i, j in zip(first, second, strict=True)]
        return rows({"replicate": range(self.replicates), "pair": pairs}, columns)

    def inputs(self, observed: str, seed: int, device) -> Tensor:
        """Opening token, context, what the world shows: (worlds, contexts, T)."""
        draw = stream(seed, "frozen texts")
        letters = lambda *shape: torch.randint(26, shape, generator=draw)  # noqa: E731
        contexts, shown = letters(self.contexts, self.before), letters(self.worlds, self.shown)
        shown = shown if observed == "distinct" else shown[:1].expand(self.worlds, -1)
        grid = (self.worlds, self.contexts)
        parts = [torch.full((*grid, 1), 26), contexts.expand(*grid, -1), shown.unsqueeze(1).expand(*grid, -1)]
        return torch.cat(parts, dim=-1).to(device)

    def laws(self, model: MicroGPT, ids: Tensor) -> Tensor:
        """What each model says after each text, (replicates, texts, V)."""
        return model(ids)[:, :, -1].softmax(dim=-1)

    @torch.enable_grad()
    def adapted(self, model: MicroGPT, world: int, ids: Tensor, seed: int, device) -> Tensor:
        """The same after one gradient step on a text of that world."""
        text = torch.randint(26, (1, 16), generator=stream(seed, "adapted", world)).to(device)
        losses = text_losses(model(text[:, :-1]), text[:, 1:]).mean(dim=(1, 2))
        weights = dict(model.named_parameters())
        steps = torch.autograd.grad(losses.sum(), list(weights.values()))
        moved = {name: weight - self.step * g for (name, weight), g in zip(weights.items(), steps, strict=True)}
        return torch.func.functional_call(model, moved, (ids,))[:, :, -1].softmax(dim=-1).detach()

    def own_excess(self, ecology: FiniteEcology, laws: Tensor) -> np.ndarray:
        """The loss of each network as a reader of its own inputs, less the floor."""
        each = tuple(range(self.worlds))
        found = [ecology.loss(each, one.double().cpu().numpy()) - ecology.entropy_floor() for one in laws]
        return np.array(found)[:, None]

    def of_code(self, ecology: FiniteEcology, laws: Tensor) -> np.ndarray:
        """The excess of each network's code: worlds are in one cell where its outputs are equal in every context."""
        close = output_distances(laws.unsqueeze(1), laws.unsqueeze(2)).cpu().numpy() < EQUAL
        codes = [[int(np.flatnonzero(row)[0]) for row in one] for one in close]
        return np.array([ecology.js_excess(code) for code in codes])[:, None]


def without_context(ecology: FiniteEcology) -> FiniteEcology:
    """The same worlds for a reader to whom all contexts look alike."""
    return FiniteEcology(ecology.prior, [1.0], np.einsum("c,ncv->nv", ecology.contexts, ecology.laws)[:, None])


@dataclass(frozen=True, kw_only=True)
class Imposed(Experiment):
    """TE-13.c: trained transformers that see a context token and then the cell of the world, against L*(p).

    All codes of four worlds and all replicates train side by side on the exact expected loss, so that nothing is
    sampled. In the arm "scrambled" the second token is drawn with the cells' masses but independently of the world, in
    the arm "blind" the network has no block and sees the second token alone. Rows: arm, replicate, code (place among
    the partitions), k (its cells), loss, before (the loss at 0.9 of the steps), target (L*(p)), reach (the least loss
    of what the arm can see: L*(p), L* of the constant code, H(Y | X)), one_cell (L* of the constant code), floor.
    """

    replicates: int = 8
    worlds: int = 4
    contexts: int = 3
    tokens: int = 5
    steps: int = 1500
    rate: float = 0.02

    tiers: ClassVar = {
        "ci": {"replicates": 1},
        "cpu": {"replicates": 4},
        "gpu": {},
    }
    tiny: ClassVar = {"worlds": 3, "steps": 250}
    dtype: ClassVar = torch.float64
    deterministic: ClassVar = {"target": 1e-12, "reach": 1e-12, "one_cell": 1e-12, "floor": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"arm": arm} for arm in ("imposed", "scrambled", "blind")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        ecologies = [
            random_ecology(self.worlds, self.contexts, self.tokens, stream(seed, "imposed", replicate))
            for replicate in range(self.replicates)
        ]
        codes = [tuple(int(each) for each in code) for code in set_partitions(self.worlds)]
        pairs = [(ecology, code) for ecology in ecologies for code in codes]
        arm, constant = condition["arm"], (0,) * self.worlds
        tables = [self.table(ecology, code, arm) for ecology, code in pairs]
        weights = torch.as_tensor(np.stack(tables), dtype=dtype, device=device)  # (K, contexts, cells, tokens)
        depth = 0 if arm == "blind" else 2
        size = GPTSize(vocabulary=self.contexts + self.worlds, width=16, depth=depth, heads=2, block=2)
        model = build(size, len(pairs), seed, device, dtype)
        ids = torch.cartesian_prod(torch.arange(self.contexts), self.contexts + torch.arange(self.worlds)).to(device)

        def loss(step: int) -> Tensor:
            logits = model(ids)[:, :, -1, : self.tokens].log_softmax(dim=-1)
            return -(weights.flatten(1, 2) * logits).sum(dim=(1, 2))

        losses = fit(model, loss, steps=self.steps, rate=falling(self.rate, self.steps))
        shape = (self.replicates, len(codes))
        of = {"imposed": lambda e, code: e.bayes_loss(code), "scrambled": lambda e, _: e.bayes_loss(constant)}
        reach = of.get(arm, lambda e, code: without_context(e).bayes_loss(code))
        columns = {
            "k": [max(code) + 1 for code in codes],
            "loss": loss(self.steps).detach().double().cpu().view(shape),
            "before": losses[:, int(0.9 * self.steps)].view(shape),
            "target": np.reshape([ecology.bayes_loss(code) for ecology, code in pairs], shape),
            "reach": np.reshape([reach(ecology, code) for ecology, code in pairs], shape),
            "one_cell": np.array([ecology.bayes_loss(constant) for ecology in ecologies])[:, None],
            "floor": np.array([ecology.entropy_floor() for ecology in ecologies])[:, None],
        }
        return rows({"replicate": range(self.replicates), "code": range(len(codes))}, columns)

    def table(self, ecology: FiniteEcology, code: tuple[int, ...], arm: str) -> np.ndarray:
        """Pr(context, cell, token), (contexts, worlds, tokens); cells that the code lacks have weight zero."""
        joint = ecology.prior[:, None, None] * ecology.contexts[:, None] * ecology.laws  # (worlds, contexts, tokens)
        table = np.zeros((self.contexts, self.worlds, self.tokens))
        np.add.at(table, (slice(None), list(code)), joint.transpose(1, 0, 2))
        if arm == "scrambled":
            masses = np.bincount(code, weights=ecology.prior, minlength=self.worlds)
            table = table.sum(axis=1, keepdims=True) * masses[:, None]
        return table
