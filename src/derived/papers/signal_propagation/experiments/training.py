"""Training small vision transformers over depth, alpha and warm-up, R networks side by side in one plain loop.

symbol     name        meaning                                               axes
loss       losses      mean cross-entropy of each network at each step       (R, steps)
lr(t)      lr, warmup  lr min(1, (t + 1)/warmup), then constant
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from derived.lab import training
from derived.lab.checks import check_count, check_positive
from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.generated import LabelledImages, template_images
from ..model.jacobian import gradient_amplification
from ..model.kernels import NormKernel, kernel_of
from ..model.meanfield import propagate
from ..model.transformer import Sigmas, token_moments
from ..model.vit import VisionTransformer


class Trained(NamedTuple):
    """What ``train`` returns; a network that diverged shows NaN or infinity, nothing is clipped."""

    losses: Tensor  # (R, steps), in float64 on the CPU
    test_loss: Tensor  # (R,)
    test_accuracy: Tensor  # (R,)


def train(
    model: VisionTransformer,
    data: LabelledImages,
    test: LabelledImages,
    *,
    steps: int,
    batch_size: int = 128,
    lr: float = 3e-4,
    warmup: int = 0,
    weight_decay: float = 0.05,
    generator: torch.Generator,
) -> Trained:
    """AdamW, betas (0.9, 0.999), linear warm-up over ``warmup`` steps, then a constant rate. [repo]

    Weight decay acts on the weight matrices, not on positions, biases or normalisers. ``data`` and ``test`` hold D
    draws of pictures; network r sees draw r mod D, in batches from ``generator`` with replacement, each draw its own.
    """
    check_count("steps", steps)
    check_count("batch_size", batch_size)
    check_count("warmup", warmup, 0)
    check_positive("lr", lr)
    device, (draws, num) = data.images.device, data.labels.shape
    batches = torch.randint(num, (steps, draws, batch_size), generator=generator, device=generator.device).to(device)
    own = torch.arange(len(model.embedding), device=device) % draws  # the draw that each network sees

    def loss(step: int) -> Tensor:
        picked = own[:, None], batches[step][own]
        return training.mean_cross_entropy(model(data.images[picked]), data.labels[picked])

    # What decays: W_Q .. W_2, the patch embedding and the head; positions and biases have three axes, too.
    def is_matrix(name: str, weight: Tensor) -> bool:
        return weight.ndim == 3 and name not in ("positions", "head_bias")  # one per network: (R, out, in)

    optimiser = training.adamw(model, betas=(0.9, 0.999), weight_decay=weight_decay, decays=is_matrix)
    losses = training.train(loss, optimiser, steps=steps, rate=lambda step: lr * min(1.0, (step + 1) / max(warmup, 1)))
    pairs = zip(test.images.split(batch_size, dim=1), test.labels.split(batch_size, dim=1), strict=True)
    return Trained(losses, *training.evaluate((model(images[own]), labels[own]) for images, labels in pairs))


@dataclass(frozen=True, kw_only=True)
class Trainability(Experiment):
    """SP-17: small Derf vision transformers over depth and alpha, and warm-up at the largest depth and alpha.

    Stands in for ViT-Base on CIFAR-100 (depths 12 to 36, 20 epochs). A replicate has its own classes, pictures and
    batches, which its networks share, and each network its own weights. Each depth and alpha is trained at every rate
    in ``factors`` times its own of ``centres``, (depths, alphas), where a pilot of another seed had its best. Rows:
    rate, replicate; loss (mean over the last tenth of the steps), test_loss, test_accuracy, log_pooled (the prediction)
    and log_measured at initialisation.
    """

    depths: tuple[int, ...] = (6, 12, 24, 36)
    warmup: int = 100
    alphas: tuple[float, ...] = (0.3, 0.6, 1.0, 1.6)
    centres: tuple[tuple[float, ...], ...] = 4 * ((6.3e-4,) * 4,)
    factors: tuple[float, ...] = (0.625, 1.0, 1.6)
    replicates: int = 8
    width: int = 192
    num_heads: int = 3
    size: int = 64
    patch: int = 8
    num_classes: int = 100
    num_train: int = 20_000
    num_test: int = 2_000
    steps: int = 1000
    batch_size: int = 64

    tiers: ClassVar = {
        "ci": {
            **{"depths": (2,), "warmup": 2, "alphas": (0.5, 1.5), "centres": ((1e-3, 1e-3),), "factors": (1.0,)},
            **{"replicates": 2, "width": 24, "num_heads": 2, "size": 16, "num_classes": 4, "num_train": 64},
            **{"num_test": 32, "steps": 2, "batch_size": 8},
        },
        "cpu": {
            **{"depths": (3, 6, 12), "warmup": 50, "alphas": (0.4, 0.8, 1.6), "replicates": 45, "width": 32},
            **{"centres": ((2.5e-3, 2.5e-3, 1.6e-3), (2.5e-3, 2e-3, 1e-3), (2e-3, 8e-4, 4e-4))},
            **{"num_heads": 2, "size": 32, "num_classes": 10, "num_train": 3200, "num_test": 500, "steps": 200},
            **{"batch_size": 16},
        },
        "gpu": {},
    }
    tiny: ClassVar = {"width": 12}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        grid = [{"depth": depth, "alpha": alpha, "warmup": 0} for depth in self.depths for alpha in self.alphas]
        return [*grid, grid[-1] | {"warmup": self.warmup}]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        data, test = (self._draws(name, seed, dtype, device) for name in ("train", "test"))
        centre = self.centres[self.depths.index(condition["depth"])][self.alphas.index(condition["alpha"])]
        tables = [self._trained(data, test, factor * centre, seed, **condition) for factor in self.factors]
        return pd.concat(tables, ignore_index=True)

    def _trained(
        self, data: LabelledImages, test: LabelledImages, rate: float, seed: int, depth: int, alpha: float, warmup: int
    ) -> pd.DataFrame:
        """A network of each replicate at one rate; the same weights and batches at every rate, and with warm-up."""
        model = VisionTransformer(
            image_size=self.size,
            patch=self.patch,
            width=self.width,
            num_heads=self.num_heads,
            depth=depth,
            num_classes=self.num_classes,
            norm="erf",
            alpha=alpha,
            num_networks=self.replicates,
            generator=stream(seed, "weights", depth, alpha),
            dtype=data.images.dtype,
            device=data.images.device,
        )
        states = model.states(test.images[:, :16])
        loss = training.mean_cross_entropy(model.read_out(states[-1]), test.labels[:, :16]).sum()
        log_measured = gradient_amplification(loss, states)[:, 0].log().numpy()
        predicted = self._predicted(states[0].detach(), kernel_of("erf", np.full(self.replicates, alpha)), depth)
        options = {"steps": self.steps, "batch_size": self.batch_size, "lr": rate, "warmup": warmup}
        run = train(model, data, test, **options, generator=stream(seed, "batches"))
        tail = max(1, self.steps // 10)
        columns = {"loss": run.losses[:, -tail:].mean(dim=-1), "test_loss": run.test_loss}
        columns |= {"test_accuracy": run.test_accuracy, "log_pooled": predicted, "log_measured": log_measured}
        return rows({"rate": rate, "replicate": range(self.replicates)}, columns)

    def _draws(self, name: str, seed: int, dtype: torch.dtype, device: torch.device) -> LabelledImages:
        """The pictures of every replicate, (replicates, num, ...): each with classes of its own."""
        num = self.num_train if name == "train" else self.num_test
        kind = {"num_classes": self.num_classes, "size": self.size, "dtype": dtype, "device": device}
        drawn = [
            template_images(num, classes=stream(seed, "classes", each), generator=stream(seed, name, each), **kind)
            for each in range(self.replicates)
        ]
        return LabelledImages(*(torch.stack(each) for each in zip(*drawn, strict=True)))

    def _predicted(self, h: Tensor, kernel: NormKernel, depth: int) -> np.ndarray:
        """ln of the pooled amplification, from the (q, p) of the embedded images h (R, images, n, d)."""
        q, p, _ = (each.mean(dim=-1).cpu().numpy() for each in token_moments(h))
        sigmas = Sigmas()
        common = {"a": sigmas.a, "s": sigmas.s, "n": h.shape[-2], "depth": depth, "output_gradient": "pooled"}
        return propagate(q, p, kernel=kernel, **common).log_J_backward[..., 0]
