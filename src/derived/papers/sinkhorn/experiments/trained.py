"""Trained relations and trained classifiers: what does each normaliser learn, for which lengths, and does it help?

symbol   name            meaning                                                             axes
R        models          networks of one arm, side by side, each with data of its own        leading axis
-        rate            learning rate; ``chosen`` is the best of an arm on validation data  scalar
-        num_half_steps  the arm: 1 softmax, 3 and 5 the published Sinkformers               scalar

All arms of a task share their initial weights and their data, so that differences between arms are paired by model.
"""

import math
import time
from dataclasses import dataclass, replace
from typing import ClassVar

import pandas as pd
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from derived.lab import training
from derived.lab.experiment import Experiment, rows
from derived.lab.nets import Draws
from derived.lab.rng import stream

from ..data.points import SURFACES, Problem, clouds, coupling_problems, matching
from ..model.attention import CouplingTransformer, SinkhornTransformer, attention_weights
from ..model.couplings import rows_w1
from ..model.plan import half_steps, sinkhorn

CLASSES = 4  # of the matching task
NORMALISERS = ("softmax", "sinkhorn")


def schedule(peak: float, steps: int, held: float = 0.0):
    """A warm-up over a tenth of the steps, the peak until a share ``held`` of them, then half a cosine to zero."""

    def rate(step: int) -> float:
        fallen = max(0.0, (step / steps - held) / (1 - held))
        return peak * min(1.0, 10 * (step + 1) / steps) * 0.5 * (1 + math.cos(math.pi * fallen))

    return rate


def coupling_loss(scores: Tensor, problem: Problem, normaliser: str, iterations: int) -> Tensor:
    """KL(target | P) of each network, mean over its problems, P by rows (softmax) or by rows and columns (sinkhorn).

    For a coupling the gradient in the scores is P - target: target and P have the same marginals, so that
    -<target, ln P> = D*(S) - <target, S> with the optimal dual value D*, whose derivative is P (envelope theorem). No
    step of Sinkhorn is differentiated.
    """
    a, b, target = (each.to(scores) for each in problem[2:])
    if normaliser == "softmax":
        log_plan, surrogate = half_steps(scores, 1, a, b), 0.0
    else:
        result = sinkhorn(scores.detach(), a, b, tol=1e-4, max_iterations=iterations)
        log_plan, surrogate = result.log_plan, ((result.plan - target) * scores).sum(dim=(-2, -1))
        surrogate = surrogate - surrogate.detach()
    value = (torch.xlogy(target, target) - target * log_plan).sum(dim=(-2, -1))
    return (value + surrogate).mean(dim=-1)


@dataclass(frozen=True, kw_only=True)
class LearnedCouplings(Experiment):
    """SK-8: a transformer learns a relation on short texts, by either normaliser, and is tested on longer ones.

    Every token carries a weight; the loss is KL(target | P), on lengths that take turns. The rate is chosen on
    ``tuning`` networks of their own: all rates for ``search`` steps, the best ``finalists`` of them for all steps. Rows
    of the stages "search" and "run-off": model, rate, validation (loss at the end). Rows of the stage "final", at the
    rate of the smallest mean: model, rate, validation, n; learned and product: mean over texts of the distance by rows
    from the target, of the trained plan and of the product coupling; ratio; missed: the mass in wrong columns, half of
    sum_j |(P^T 1)_j - b_j|. Rows of the stage "curve", at that rate: model, tenth (of the steps), loss (mean in
    training, on texts never seen before).
    """

    targets: tuple[str, ...] = ("comonotone", "crossed", "shuffled")
    models: int = 8
    rates: tuple[float, ...] = (1.6e-3, 2.5e-3, 4e-3, 6.3e-3, 1e-2, 1.6e-2)
    tuning: int = 4
    search: int = 1000
    finalists: int = 3
    steps: int = 13_500
    batch: int = 32
    shortest: int = 8
    longest: int = 16
    lengths: tuple[int, ...] = (8, 16, 32, 64)
    texts: int = 64
    width: int = 64
    depth: int = 3
    rank: int = 16
    iterations: int = 20

    tiers: ClassVar = {
        "ci": {"models": 2, "rates": (1e-2, 1.6e-2), "tuning": 2, "search": 2, "finalists": 1, "steps": 10, "batch": 4}
        | {"texts": 3, "width": 16, "depth": 1, "lengths": (8, 64)},
        "cpu": {"models": 34, "search": 300, "batch": 8, "texts": 16, "width": 32, "depth": 2},
        "gpu": {},
    }
    tiny: ClassVar = {"search": 1, "texts": 2, "lengths": (8, 16)}
    dtype: ClassVar = torch.float32
    held: ClassVar[float] = 0.5  # the share of the steps after which the rate falls

    def conditions(self) -> list[dict]:
        return [{"target": target, "normaliser": name} for target in self.targets for name in NORMALISERS]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        relation, normaliser = condition["target"], condition["normaliser"]
        few, rates, tables = replace(self, models=self.tuning), self.rates, []
        for stage, steps, kept in (("search", self.search, self.finalists), ("run-off", self.steps, 1)):
            tried = {}
            for rate in rates:
                model, _ = few._trained(relation, normaliser, rate, steps, seed + 1, device, dtype)
                tried[rate] = few._validated(model, relation, normaliser, seed + 1)
                table = rows({"model": range(self.tuning)}, {"validation": tried[rate]})
                tables.append(table.assign(rate=rate, stage=stage))
            rates = sorted(tried, key=lambda rate: float(tried[rate].mean()))[:kept]
        [rate] = rates
        model, losses = self._trained(relation, normaliser, rate, self.steps, seed, device, dtype)
        validation = self._validated(model, relation, normaliser, seed).numpy()
        for n in self.lengths:
            tested = self._tested(model, relation, normaliser, n, seed).assign(rate=rate, stage="final")
            tables.append(tested.assign(validation=validation))
        course = torch.stack([part.mean(dim=-1) for part in losses.tensor_split(10, dim=-1)], dim=-1)
        index = {"model": range(self.models), "tenth": range(1, 11)}
        tables.append(rows(index, {"loss": course}).assign(rate=rate, stage="curve"))
        return pd.concat(tables, ignore_index=True)

    @torch.no_grad()
    def _validated(self, model: CouplingTransformer, relation: str, normaliser: str, seed: int) -> Tensor:
        problem = self._problems(relation, self.texts, self.longest, stream(seed, relation, "validation"))
        return coupling_loss(self._scores(model, problem), problem, normaliser, 200).double().cpu()

    def _problems(self, relation: str, num: int, n: int, generator: torch.Generator) -> Problem:
        """Problems of each network's own, (R, num, ...)."""
        drawn = coupling_problems(relation, self.models * num, n, generator)
        return Problem(*(each.unflatten(0, (self.models, num)) for each in drawn))

    @staticmethod
    def _scores(model: CouplingTransformer, problem: Problem) -> Tensor:
        return model(*(each.to(model.encoder.enter) for each in problem[:4]))

    def _trained(
        self, relation: str, normaliser: str, rate: float, steps: int, seed: int, device, dtype
    ) -> tuple[CouplingTransformer, Tensor]:
        """The networks and their losses of every step, (R, steps)."""
        draws = Draws(num_networks=self.models, seed=seed, layer="couplings", dtype=dtype, device=device)
        model = CouplingTransformer(rank=self.rank, width=self.width, depth=self.depth, draws=draws)
        generator = stream(seed, "train", relation)

        def loss(step: int) -> Tensor:
            n = self.shortest + step % (self.longest + 1 - self.shortest)
            problem = self._problems(relation, self.batch, n, generator)
            return coupling_loss(self._scores(model, problem), problem, normaliser, self.iterations)

        optimiser = training.adamw(model, betas=(0.9, 0.98), weight_decay=0.0)
        return model, training.train(loss, optimiser, steps=steps, rate=schedule(rate, steps, self.held))

    @torch.no_grad()
    def _tested(self, model: CouplingTransformer, relation: str, normaliser: str, n: int, seed: int) -> pd.DataFrame:
        problem = self._problems(relation, self.texts, n, stream(seed, relation, "test", n))
        scores = self._scores(model, problem).double().cpu()
        _, y, a, b, target = problem
        if normaliser == "softmax":
            plan = half_steps(scores, 1, a, b).exp()
        else:
            plan = sinkhorn(scores, a, b, tol=1e-7, max_iterations=500).plan
        product = a.unsqueeze(-1) * b.unsqueeze(-2)
        learned, alone = (rows_w1(each, target, y).mean(dim=-1) for each in (plan, product))
        missed = (plan.sum(dim=-2) - b).abs().sum(dim=-1).mean(dim=-1) / 2
        columns = {"learned": learned, "product": alone, "ratio": learned / alone, "missed": missed}
        return rows({"model": range(self.models)}, columns).assign(n=n)


class Placebo(SinkhornTransformer):
    """The same, but column steps go towards what softmax gives the columns of another text of the batch: they cost as
    much, bend as much, and balance nothing."""

    def attend(self, scores: Tensor, weights: Tensor | None) -> Tensor:
        given = half_steps(scores.detach(), 1).exp().sum(dim=-2).roll(1, dims=1)  # (R, batch, heads, T)
        return attention_weights(scores, self.num_half_steps, None, given)


@dataclass(frozen=True, kw_only=True)
class Arms(Experiment):
    """SK-17, SK-18: transformers of equal parameters and starts, trained with 1, 3 and 5 half-steps; softmax is also
    trained for ``longer`` times as many steps, so that it has more operations and time than any other arm.

    matching: 16 keys with a class and 16 noisy copies without: say the class of each copy's partner. clouds: which of
    six surfaces. Rows of the stage "final": steps, model, rate, chosen (of the best mean accuracy on validation data),
    validation, accuracy, loss, deviation_before and deviation_after: mean over layers, heads and texts of
    sum_j |mean_i A_ij - 1/n|; nearest and assigned: what the nearest key, and the best assignment of copies to keys,
    would answer on the texts of all networks (NaN for clouds); middle and last: mean loss in training over the tenth of
    the steps after the half, and over the last tenth. Rows of the stage "curve": loss (mean in training, on texts never
    seen before, over a twentieth of the steps, the last of which is ``step``), operations (of a network up to there)
    and seconds (of the processor, for all networks together).
    """

    tasks: tuple[str, ...] = ("matching", "clouds")
    arms: tuple[int, ...] = (1, 3, 5)
    models: int = 16
    rates: tuple[float, ...] = (1.6e-3, 2.5e-3, 4e-3, 6.3e-3, 1e-2, 1.6e-2)
    steps: int = 6000
    longer: int = 3
    batch: int = 64
    pairs: int = 16
    points: int = 256
    width: int = 64
    depth: int = 2
    texts: int = 1000

    tiers: ClassVar = {
        "ci": {"tasks": ("matching",), "arms": (1, 3, 5), "models": 2, "rates": (3e-3,), "steps": 8, "batch": 4}
        | {"texts": 20, "width": 16, "depth": 1},
        "cpu": {"tasks": ("matching",), "models": 27, "steps": 600, "batch": 16, "texts": 200, "width": 32}
        | {"rates": (4e-3, 6.3e-3, 1e-2, 1.6e-2, 2.5e-2)},
        "gpu": {},
    }
    tiny: ClassVar = {"steps": 2, "texts": 10, "pairs": 4}
    dtype: ClassVar = torch.float32
    draws: ClassVar[tuple[str, ...]] = ()  # of a subclass: the names that make its draws its own

    def conditions(self) -> list[dict]:
        arms = [(arm, self.steps) for arm in self.arms] + [(1, self.longer * self.steps)]
        return [{"task": task, "num_half_steps": arm, "steps": steps} for task in self.tasks for arm, steps in arms]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        task, steps, tables = condition["task"], condition["steps"], []
        for rate in self.rates:
            model = self._model(condition, seed, dtype, device)
            before = self._deviation(model, task, seed)
            losses, seconds = self._train(model, task, rate, steps, seed)
            tenth = -(-steps // 10)
            middle = losses[:, steps // 2 :][:, :tenth].mean(dim=-1)
            columns = {
                "middle": middle,
                "last": losses[:, -tenth:].mean(dim=-1),
                "deviation_before": before,
                "deviation_after": self._deviation(model, task, seed),
            }
            _, columns["validation"] = self._judged(model, task, seed, "validation")
            columns["loss"], columns["accuracy"] = self._judged(model, task, seed, "test")
            tables.append(rows({"model": range(self.models)}, columns).assign(rate=rate, stage="final"))
            tables.append(self._curve(model, task, losses, seconds).assign(rate=rate, stage="curve"))
        table = pd.concat(tables, ignore_index=True)
        best = table.groupby("rate")["validation"].mean().idxmax()  # curves have none
        return table.assign(chosen=table["rate"] == best, **self._references(task, seed))

    def _model(self, condition, seed: int, dtype: torch.dtype, device) -> SinkhornTransformer:
        task, kind = condition["task"], Placebo if condition.get("placebo") else SinkhornTransformer
        layer = " ".join((task, *self.draws))
        draws = Draws(num_networks=self.models, seed=seed, layer=layer, dtype=dtype, device=device)
        features, outputs = (CLASSES + 3, CLASSES) if task == "matching" else (3, len(SURFACES))
        sizes = {"width": self.width, "depth": self.depth, "num_half_steps": condition["num_half_steps"]}
        return kind(features, outputs, draws=draws, **sizes)

    def _curve(self, model: SinkhornTransformer, task: str, losses: Tensor, seconds: list[float]) -> pd.DataFrame:
        """Losses in training against what was spent; a step costs three forward passes, as is usually counted."""
        parts = losses.split(max(1, losses.shape[-1] // 20), dim=-1)
        step = torch.tensor([part.shape[-1] for part in parts]).cumsum(dim=0)
        tokens = 2 * self.pairs if task == "matching" else self.points
        spent = 3 * self.batch * model.operations(tokens) * step.double()
        columns = {"loss": torch.stack([part.mean(dim=-1) for part in parts], dim=-1), "operations": spent}
        columns["seconds"] = torch.tensor(seconds, dtype=torch.float64)[step - 1]
        return rows({"model": range(self.models), "step": step}, columns)

    def _references(self, task: str, seed: int) -> dict[str, float]:
        if task != "matching":
            return {"nearest": math.nan, "assigned": math.nan}
        features, labels = (each.flatten(0, 1) for each in self._judges(task, self.texts, seed, "test"))
        keys, copies = features[..., :2].chunk(2, dim=1)
        known = features[:, : self.pairs, 2 : 2 + CLASSES].argmax(dim=-1)
        distance = torch.cdist(copies, keys)
        found = torch.stack([torch.from_numpy(linear_sum_assignment(each.square())[1]) for each in distance])
        partners = {"nearest": distance.argmin(dim=-1), "assigned": found}
        return {name: float((known.gather(1, each) == labels).double().mean()) for name, each in partners.items()}

    def _judges(self, task: str, num: int, seed: int, name: str) -> list[Tensor]:
        """Features and labels of texts of each network's own, (R, num, ...)."""
        drawn = self._drawn(task, self.models * num, stream(seed, name, task, *self.draws))
        return [each.unflatten(0, (self.models, num)) for each in drawn]

    def _drawn(self, task: str, num: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        if task == "matching":
            return matching(num, self.pairs, generator, CLASSES)
        return clouds(num, self.points, generator)

    @staticmethod
    def _logits(model: SinkhornTransformer, task: str, features: Tensor, attended=None) -> Tensor:
        """At the queries of a matching, (R, texts, pairs, classes); of a whole cloud, (R, texts, 1, classes)."""
        outputs = model(features.to(model.enter), attended=attended)
        if task == "matching":
            return outputs[..., outputs.shape[-2] // 2 :, :]
        return outputs.mean(dim=-2, keepdim=True)

    def _train(
        self, model: SinkhornTransformer, task: str, rate: float, steps: int, seed: int
    ) -> tuple[Tensor, list[float]]:
        """The losses of every step, (R, steps), and the processor's seconds from the start to the end of its forward
        pass."""
        generator, seconds, start = stream(seed, "train", task, *self.draws), [], time.process_time()

        def loss(step: int) -> Tensor:
            features, labels = self._drawn(task, self.models * self.batch, generator)
            features, labels = (each.unflatten(0, (self.models, self.batch)) for each in (features, labels))
            found = training.mean_cross_entropy(self._logits(model, task, features), labels.to(model.enter.device))
            seconds.append(time.process_time() - start)
            return found

        optimiser = training.adamw(model, betas=(0.9, 0.98), weight_decay=0.01)
        return training.train(loss, optimiser, steps=steps, rate=schedule(rate, steps)), seconds

    def _judged(self, model: SinkhornTransformer, task: str, seed: int, name: str) -> tuple[Tensor, Tensor]:
        drawn = self._judges(task, self.texts, seed, name)
        parts = zip(*(each.split(50, dim=1) for each in drawn), strict=True)
        return training.evaluate((self._logits(model, task, x), y.to(model.enter.device)) for x, y in parts)

    @torch.no_grad()
    def _deviation(self, model: SinkhornTransformer, task: str, seed: int) -> Tensor:
        attended: list[Tensor] = []
        features, _ = self._judges(task, min(20, self.texts), seed, "validation")
        self._logits(model, task, features, attended)
        A = torch.stack(attended, dim=1)  # (R, layers, texts, heads, n, n)
        missed = (A.mean(dim=-2) - 1 / A.shape[-1]).abs().sum(dim=-1)
        return missed.flatten(1).mean(dim=-1).double().cpu()


@dataclass(frozen=True, kw_only=True)
class EqualSeconds(Arms):
    """SK-18 at equal seconds of the processor, with a placebo of five half-steps: other draws than those of ``Arms``.

    Softmax, three half-steps and the placebo have ``times`` the ``steps`` of five half-steps. The seconds of the curves
    say what that came to; softmax and the placebo were meant to have rather more than three and five half-steps. Rows
    as of ``Arms``.
    """

    times: tuple[float, float, float] = (1.9, 1.15, 0.8)

    tiers: ClassVar = {"ci": Arms.tiers["ci"], "cpu": Arms.tiers["cpu"] | {"models": 12}}
    draws: ClassVar = ("equal seconds to the end",)

    def conditions(self) -> list[dict]:
        softmax, three, placebo = (round(each * self.steps) for each in self.times)
        arms = [(1, False, softmax), (3, False, three), (5, False, self.steps), (5, True, placebo)]
        names = ("num_half_steps", "placebo", "steps")
        return [{"task": task} | dict(zip(names, arm, strict=True)) for task in self.tasks for arm in arms]
