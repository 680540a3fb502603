"""Small encoders trained side by side on a system, and what is measured of them: helper of the topics.

symbol   name      meaning                                                                        axes
R        networks  independent models: each has its own training paths, bins, weights, batches,   leading axis
                   and paths that judge it
x        values    the observed coordinate, as a share of the range of the validation paths       (R, n, L)
D        distortion   Procrustes distortion between mean states before and after noise, mean over four shares of
                      disturbed positions: the published measure                                  (R,)
R^2      probe     of a linear map from token states to the true state, fitted on half of a network's judged paths,
                   judged on the other half; ``hidden``: over the coordinates that no model saw   (R,)
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab import training
from derived.lab.experiment import Experiment, rows
from derived.lab.nets import Draws
from derived.lab.rng import stream

from .data import carbon, systems
from .model import heads
from .model.encoders import CausalConvolution, CausalTransformer, Encoder, Size, StateSpace
from .model.metrics import jump_and_spread, procrustes_distortion
from .model.tokens import LloydMax

SHARES = (0.01, 0.02, 0.05, 0.1)  # of positions that are disturbed
RATES = (3e-3, 1e-2, 3e-2, 1e-1)
SOFT = ("blurred", "smoothed", "disordered")  # arms whose label is a row of a table
NUMBER = ("scalar", "rounded")  # arms whose head is one number
GROUPS = {"coarse": 16, "coarser": 4}  # hard labels in so many groups of neighbouring bins
DISTURBANCE = 0.1  # standard deviation, as a share of the range
AT_ONCE = 500  # sequences of each network that are read at once: all those of a large tier fit no card
ENCODERS: dict[str, Callable[[Size, Draws], Encoder]] = {
    "attention": CausalTransformer,
    "state": StateSpace,
    "convolution": CausalConvolution,
    "leaking": lambda size, draws: CausalConvolution(size, draws, leak=True),
}
#: What the smaller tiers change.
CI: Mapping[str, Any] = {"networks": 2, "search": 1, "rates": (1e-2, 3e-2), "steps": 4, "batch": 2, "length": 8}
CI |= {"width": 8, "depth": 1, "heads": 1, "paths": 12, "judged": 16, "codes": 8}
CPU: Mapping[str, Any] = {"search": 1, "steps": 600, "batch": 16, "length": 32, "width": 32, "depth": 2, "heads": 2}
CPU |= {"paths": 2000, "judged": 200, "codes": 64}
SHORT: Mapping[str, Any] = {**CPU, "steps": 500, "batch": 8}
MEASURED = ("carbon", "carbon in random order")
#: The time between two points of a path, and the time before the first.
GAPS = {"lorenz": 0.05, "oscillators": 4 / 64, "waveforms": 1 / 256}


@functools.lru_cache(maxsize=16)  # arms and looks share them
def paths(system: str, n: int, L: int, part: str, seed: int, *names) -> Tensor:
    """States (n, L, d) of a system, drawn from stream(seed, *names); a Lorenz path starts on the attractor. Of a measured
    series windows of a ``part``."""
    generator = stream(seed, *names)
    if system in MEASURED:
        return carbon.windows(part, n, L, generator, in_order=system == MEASURED[0]).unsqueeze(-1)
    facts = {"time": GAPS[system] * (L - 1), "generator": generator}
    return getattr(systems, system)(n, L, **facts, **({"burn_in": 2.0} if system == "lorenz" else {}))


@dataclass(frozen=True)
class Bins:
    """The bins of R networks on the line: ``edges`` (R, K - 1) and what each decodes to, ``centres`` (R, K)."""

    edges: Tensor
    centres: Tensor

    @classmethod
    def uniform(cls, values: Tensor, K: int) -> "Bins":
        """Equal bins from the least to the greatest of each network's ``values`` (R, n)."""
        low, high = (each.unsqueeze(-1) for each in values.aminmax(dim=-1))
        k = torch.arange(K, dtype=values.dtype)
        return cls((low + (high - low) * k[1:] / K).contiguous(), low + (high - low) * (k + 0.5) / K)

    @classmethod
    def means(cls, values: Tensor, K: int) -> "Bins":
        """k-means of each network's ``values`` (R, n)."""
        centres = torch.stack([LloydMax.fit(each, K).codes for each in values]).to(values)
        return cls(((centres[:, 1:] + centres[:, :-1]) / 2).contiguous(), centres)

    def encode(self, values: Tensor) -> Tensor:
        """The bins of values (R, ...)."""
        return torch.searchsorted(self.edges, values.flatten(1).contiguous()).view(values.shape)

    def decode(self, tokens: Tensor) -> Tensor:
        """The centres of tokens (R, ...)."""
        return self.centres.gather(1, tokens.flatten(1)).view(tokens.shape)

    def relabelled(self, order: Tensor) -> "Bins":
        """The same bins under other names: bin k is called order[r, k], (R, K)."""
        return Shuffled(self.edges, torch.empty_like(self.centres).scatter_(1, order, self.centres), order)


@dataclass(frozen=True)
class Shuffled(Bins):
    """Bins whose labels are no longer in order."""

    order: Tensor

    def encode(self, values: Tensor) -> Tensor:
        tokens = super().encode(values)
        return self.order.gather(1, tokens.flatten(1)).view(tokens.shape)


@dataclass(frozen=True, kw_only=True)
class Data:
    """What R networks are trained on, the paths that choose the rate, the same for all, and the paths that judge: each
    network has its own draw of them and of their disturbance, so that networks differ as draws do."""

    low: Tensor  # of the range, whose share a value is
    high: Tensor
    values: Tensor  # (R, paths, L + 1), what is read
    labels: Tensor  # the same paths, as the targets
    valid: Tensor  # (1, 2 judged, L + 1)
    valid_labels: Tensor
    states: Tensor  # (R, judged, L + 1, d) of the judged paths
    test: Tensor  # (R, judged, L + 1)
    noisy: Tensor  # (len(SHARES), R, judged, L) disturbed


@functools.lru_cache(maxsize=4)  # the arms of one system share it
def data(
    system: str,
    *,
    networks: int,
    num: int,
    judged: int,
    length: int,
    noise: float,
    seed: int,
    role: str,
    on: str = "values",
) -> Data:
    """Paths of a system; ``noise``: standard deviation of what is added, as a share of the range, to every observed
    value of training, validation and test paths alike, or ``on`` "labels" to the target values alone."""
    L = length + 1

    def drawn(part: str, n: int, *names) -> Tensor:
        return paths(system, n, L, part, seed, system, *names)

    valid = drawn("choose", 2 * judged, "judged")
    low, high = valid[..., 0].min(), valid[..., 0].max()

    def observed(states: Tensor, *names) -> tuple[Tensor, Tensor]:
        """Inputs and targets."""
        x = (states[..., 0] - low) / (high - low)
        noisy = x + noise * torch.randn(x.shape, generator=stream(seed, system, "noise", *names), dtype=x.dtype)
        return (noisy if on == "values" else x), noisy

    trained = [observed(drawn("train", num, role, r), role, r) for r in range(networks)]
    values, labels = (torch.stack(each) for each in zip(*trained, strict=True))
    states = torch.stack([drawn("judge", judged, "judged", role, r) for r in range(networks)])
    test = torch.stack([observed(each, "judged", role, r)[0] for r, each in enumerate(states)])
    struck = [disturbed(each[:, :-1], stream(seed, system, "disturbance", role, r)) for r, each in enumerate(test)]
    chooses, chosen = (each[None] for each in observed(valid, "judged"))
    seen = {"values": values, "labels": labels, "valid": chooses, "valid_labels": chosen, "test": test}
    return Data(low=low, high=high, states=states, noisy=torch.stack(struck, dim=1), **seen)


def disturbed(clean: Tensor, generator: torch.Generator) -> Tensor:
    """Values (n, L) of which a share is struck by noise, (len(SHARES), n, L)."""
    hit = torch.rand(len(SHARES), *clean.shape, generator=generator) < torch.tensor(SHARES).view(-1, 1, 1)
    shift = DISTURBANCE * torch.randn(hit.shape, generator=generator, dtype=clean.dtype)
    return clean + hit * shift


@dataclass(frozen=True, kw_only=True)
class Fits(Experiment):
    """What the runs share. An arm is tried at every rate on ``search`` networks of their own; their mean loss on the
    validation paths chooses the rate of the ``networks`` that are judged. A replicate is one trained network.

    Rows: stage ("search" or "fit"), rate, replicate, step (0: untrained); valid (the arm's own loss), rmse (of the next
    value, as a share of the range), reconstruction (root mean square error of the labels alone), distortion (the
    published D), probe and hidden (R^2 of the true state), parameters.
    """

    networks: int = 8
    search: int = 2
    rates: tuple[float, ...] = RATES
    steps: int = 15_620
    batch: int = 64
    length: int = 512
    width: int = 256
    depth: int = 4
    heads: int = 4
    paths: int = 8000
    judged: int = 2000
    codes: int = 256
    blur: float = 0.06  # of a label, as a share of the range

    dtype: ClassVar = torch.float32

    def fitted(
        self,
        *,
        arm: str,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
        encoder: str = "attention",
        system: str = "lorenz",
        noise: float = 0.0,
        on: str = "values",
        learned: bool = False,
        looks: Sequence[int] = (),
        also: Callable[["Arm", Data], dict[str, Tensor]] | None = None,
        beside: Callable[["Arm", Data], dict[str, Tensor]] | None = None,
        rate: float | None = None,
    ) -> pd.DataFrame:
        """The rows of one arm; ``looks``: the steps before which it is judged, the end apart; ``also`` adds columns of
        the judged networks at their end, ``beside`` at every look; a ``rate`` that is known is not searched for."""

        def run(role: str, networks: int, rates: Tensor, looks: Sequence[int]) -> pd.DataFrame:
            each = {"system": system, "num": self.paths, "judged": self.judged, "length": self.length, "noise": noise}
            found = data(**each, networks=networks, seed=seed, role=role, on=on)
            one = Arm(self, arm, found.values, encoder, learned, seed=seed, role=role, device=device, dtype=dtype)
            look = lambda: one.judge(found) | (beside(one, found) if beside and role == "fit" else {})  # noqa: E731
            seen = {}
            watch = {step: lambda step=step: seen.update({step: look()}) for step in looks}
            if arm != "untrained":
                fit(one, found, steps=self.steps, batch=self.batch, rates=rates, looks=watch)
            seen[self.steps if arm != "untrained" else 0] = look()
            if also and role == "fit":
                seen[max(seen)] |= also(one, found)
            unseen = torch.full((networks,), math.nan, dtype=torch.float64)
            columns = {
                name: torch.stack([each.get(name, unseen) for each in seen.values()], dim=-1)
                for name in seen[max(seen)]
            }
            table = rows({("replicate", "rate"): (range(networks), rates), "step": [*seen]}, columns)
            return table.assign(stage=role, parameters=one.model.parameters_each)

        if arm == "untrained":
            return run("fit", self.networks, torch.zeros(self.networks), ())
        if rate is not None:
            return run("fit", self.networks, torch.full((self.networks,), rate, dtype=torch.float64), looks)
        rates = torch.tensor(self.rates, dtype=torch.float64).repeat_interleave(self.search)
        tried = run("search", len(rates), rates, ())
        scores = tried.groupby("rate")["valid"].agg(lambda each: each.mean(skipna=False)).dropna()
        if scores.empty:
            raise ValueError(f"at every rate of {self.rates} a network of arm {arm!r} diverged")
        best = torch.full((self.networks,), float(scores.idxmin()), dtype=torch.float64)
        return pd.concat([tried, run("fit", self.networks, best, looks)], ignore_index=True)


class Arm:
    """R networks of one arm: what they read, their targets, and what their head says in values.

    arm   "ce" hard labels, "blurred" labels, "disordered" (blurred along a random order of the bins), "smoothed" (as
          soft as the blurred ones, with no neighbours), "coarse" and "coarser" (hard labels in ``GROUPS``; the tokens
          that are read stay), "shuffled" names of bins, "scalar" (squared error of the value), "rounded" (squared error
          of the bin's centre), "cumulative" (distance of cumulative distributions); an "untrained" network has the head of "ce".
    """

    def __init__(self, size: Fits, arm: str, values: Tensor, encoder: str, learned: bool, *, seed, role, device, dtype):
        """``values`` (R, paths, L + 1) make the bins: k-means if ``learned``, else equal ones."""
        self.arm, self.seed, self.like = arm, seed, {"dtype": dtype, "device": device}
        R, K, flat = len(values), size.codes, values.flatten(1)
        self.bins = Bins.means(flat, K) if learned else Bins.uniform(flat, K)
        if arm == "shuffled":
            order = torch.rand(R, K, generator=stream(seed, "order", role)).argsort(dim=-1)
            self.bins = self.bins.relabelled(order)
        shape = {name: getattr(size, name) for name in ("length", "width", "depth", "heads")}
        groups = min(GROUPS.get(arm, K), K)
        self.width = K // groups  # bins of a label
        outputs = 1 if arm in NUMBER else groups
        draws = Draws(num_networks=R, seed=seed, layer=role, **self.like)
        self.model = ENCODERS[encoder](Size(codes=K, outputs=outputs, **shape), draws)
        self.labels = self.bins.centres.unflatten(-1, (groups, self.width)).mean(dim=-1)  # what each label decodes to
        self.centres = self.labels.to(**self.like)
        if arm in SOFT:
            self.table = heads.blurred_labels(self.centres, size.blur)
        if arm == "smoothed":
            self.table = heads.smoothed_labels(self.table)
        if arm == "disordered":
            order = torch.rand(R, K, generator=stream(seed, "disorder", role)).argsort(dim=-1).to(device)
            each = torch.arange(R, device=device).view(R, 1, 1)
            self.table = self.table[each, order.unsqueeze(-1), order.unsqueeze(-2)]

    def read(self, values: Tensor) -> Tensor:
        """Tokens of values (R or 1, ...), on the device."""
        return self.bins.encode(values.expand(len(self.centres), *values.shape[1:])).to(self.like["device"])

    def losses(self, outputs: Tensor, labels: Tensor, values: Tensor) -> Tensor:
        """The arm's own loss of each network; ``labels`` and ``values`` are those of the next positions."""
        values = values.expand(labels.shape).to(**self.like)
        if self.arm in ("scalar", "rounded"):
            asked = values if self.arm == "scalar" else self.decoded(labels)
            return heads.squared_loss(outputs, 4 * (asked - 0.5).unsqueeze(-1))  # about unit variance
        if self.arm == "cumulative":
            return heads.cumulative_loss(outputs, labels)
        if self.arm in SOFT:
            return heads.blurred_loss(outputs, labels, self.table)
        return training.mean_cross_entropy(outputs, labels // self.width)

    def decoded(self, labels: Tensor) -> Tensor:
        """The centres of labels, on the device."""
        return self.centres.gather(1, labels.flatten(1)).view(labels.shape)

    def says(self, outputs: Tensor) -> Tensor:
        """The next value that the head predicts."""
        if self.arm in ("scalar", "rounded"):
            return outputs.squeeze(-1) / 4 + 0.5
        if self.arm in ("smoothed", "disordered"):  # the mean of such a distribution lies near the middle of the range
            return self.decoded(heads.nearest_label(outputs, self.table))
        return heads.expected_value(outputs, self.centres)

    @torch.no_grad()
    def valid(self, data: Data) -> Tensor:
        """The arm's own loss on the validation paths, (R,)."""
        outputs = self.model.head(self.model(self.read(data.valid)[..., :-1]))
        labels, values = self.read(data.valid_labels)[..., 1:], data.valid_labels[..., 1:]
        return self.losses(outputs, labels, values).double().cpu()

    @torch.no_grad()
    def judge(self, data: Data) -> dict[str, Tensor]:
        """What is measured on each network's own judged paths, (R,) each."""
        tokens, L = self.read(data.test), data.test.shape[-1] - 1
        h = self.model(tokens[..., :-1])
        labels = self.bins.encode(data.test) // self.width
        decoded = self.labels.gather(1, labels.flatten(1)).view(labels.shape)
        found = {"valid": self.valid(data), "reconstruction": (decoded - data.test).square().mean(dim=(1, 2)).sqrt()}
        missed = self.says(self.model.head(h)).cpu() - data.test[..., 1:].to(h.dtype)
        found["rmse"] = missed[..., L // 4 :].square().flatten(1).mean(dim=-1).sqrt().double()
        found["distortion"] = self.distortion(h, data.noisy)
        fitted = probe(h[:, :, L // 4 :].double().cpu(), data.states[:, :, L // 4 : -1])
        return found | {"probe": fitted.mean(dim=-1), "hidden": fitted[:, 1:].mean(dim=-1)}

    @torch.no_grad()
    def distortion(self, h: Tensor, noisy: Tensor) -> Tensor:
        """The mean D over the shares, (R,), of the clean paths' states h (R, n, L, p) and those of the noisy paths
        (len(SHARES), R or 1, n, L)."""
        pooled = h.mean(dim=2).double().cpu()
        moved = [self.model(self.read(each)).mean(dim=2).double().cpu() for each in noisy]
        return torch.stack([procrustes_distortion(pooled, each) for each in moved]).mean(dim=0)


def strikes(arm: Arm, found: Data, system: str, n: int, count: int) -> tuple[Tensor, list[Tensor]]:
    """Fresh paths (R, n, L) of a system for each network, and the same with one value struck, ``count`` times."""
    R, L = len(arm.centres), found.noisy.shape[-1]
    states = [paths(system, n, L, "judge", arm.seed, "law", r) for r in range(R)]
    x = (torch.stack(states)[..., 0] - found.low) / (found.high - found.low)
    where = torch.rand(R, n, L, generator=stream(arm.seed, "law", "where")).argsort(dim=-1)[..., :count]
    shift = DISTURBANCE * torch.randn(R, n, count, generator=stream(arm.seed, "law", "shift"), dtype=x.dtype)
    return x, [x.scatter_add(-1, where[..., [i]], shift[..., [i]]) for i in range(count)]


@torch.no_grad()
def split(arm: Arm, found: Data, system: str, n: int, count: int) -> dict[str, Tensor]:
    """J, V and T of each network, and the bias of a strike."""
    x, struck = strikes(arm, found, system, n, count)
    h, *moved = (arm.model(arm.read(each)).double().cpu() for each in (x, *struck))
    one = jump_and_spread(h, torch.stack(moved))
    return one._asdict()


def probe(h: Tensor, states: Tensor) -> Tensor:
    """R^2 (R, d) of the best affine map from states h (R, n, L, p) to the truth (R, n, L, d), fitted on the first half
    of the paths, judged on the second; a ridge of 1e-6 of the mean square keeps it solvable."""
    half = h.shape[1] // 2
    (H, h), (T, t) = ([each[:, :half].flatten(1, 2), each[:, half:].flatten(1, 2)] for each in (h, states))
    centre, mean = H.mean(dim=1, keepdim=True), T.mean(dim=1, keepdim=True)
    H, h = H - centre, h - centre
    gram = H.mT @ H
    ridge = 1e-6 * gram.diagonal(dim1=-2, dim2=-1).mean(dim=-1)
    small = ridge[:, None, None] * torch.eye(gram.shape[-1], dtype=gram.dtype)
    weights = torch.linalg.solve(gram + small, H.mT @ (T - mean))
    return 1 - (h @ weights + mean - t).square().mean(dim=1) / (t - t.mean(dim=1, keepdim=True)).square().mean(dim=1)


def fit(
    arm: Arm,
    data: Data,
    *,
    steps: int,
    batch: int,
    rates: Tensor,
    looks: Mapping[int, Callable[[], None]] | None = None,
) -> Tensor:
    """AdamW with a warm-up over a tenth of the steps and a cosine to zero, network r at ``rates[r]``.

    Returns the losses (R, steps); ``looks[step]`` is called before that step. One optimiser has one rate, the largest:
    what it changes in a network of a smaller one is drawn back in proportion, which is the same, since a step of AdamW
    is linear in its rate.
    """
    optimiser = training.adamw(arm.model, betas=(0.9, 0.98), weight_decay=0.01)
    weights, top = list(arm.model.parameters()), float(rates.max())
    shares = [(rates / top).to(weight).view(-1, *[1] * (weight.ndim - 1)) for weight in weights]
    if not bool((rates == top).all()):
        before = [torch.empty_like(weight) for weight in weights]

        @torch.no_grad()
        def remember(*_) -> None:
            for old, weight in zip(before, weights, strict=True):
                old.copy_(weight)

        @torch.no_grad()
        def draw_back(*_) -> None:
            for old, weight, share in zip(before, weights, shares, strict=True):
                weight.copy_(torch.lerp(old, weight, share))

        optimiser.register_step_pre_hook(remember)
        optimiser.register_step_post_hook(draw_back)
    generator, (R, num, _) = stream(arm.seed, "batches"), data.values.shape
    tokens, labels = (arm.bins.encode(values) for values in (data.values, data.labels))
    each = torch.arange(R).unsqueeze(-1)

    def loss(step: int) -> Tensor:
        if looks and step in looks:
            looks[step]()
        picked = torch.randint(num, (R, batch), generator=generator)
        read, asked = (one[each, picked].to(arm.like["device"]) for one in (tokens, labels))
        outputs = arm.model.head(arm.model(read[..., :-1]))
        return arm.losses(outputs, asked[..., 1:], data.labels[each, picked][..., 1:])

    def rate(step: int) -> float:
        return top * min(1.0, 10 * (step + 1) / steps) * 0.5 * (1 + math.cos(math.pi * step / steps))

    return training.train(loss, optimiser, steps=steps, rate=rate)
