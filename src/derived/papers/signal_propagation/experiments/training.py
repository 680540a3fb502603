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

    Weight decay acts on the weight matrices, not on positions, biases or normalisers. The batches are drawn from
    ``generator`` with replacement; all networks see the same.
    """
    check_count("steps", steps)
    check_count("batch_size", batch_size)
    check_count("warmup", warmup, 0)
    check_positive("lr", lr)
    batches = torch.randint(len(data.labels), (steps, batch_size), generator=generator, device=generator.device)
    batches = batches.to(data.images.device)

    def loss(step: int) -> Tensor:
        return training.mean_cross_entropy(model(data.images[batches[step]]), data.labels[batches[step]])

    # What decays: W_Q .. W_2, the patch embedding and the head; positions and biases have three axes, too.
    def is_matrix(name: str, weight: Tensor) -> bool:
        return weight.ndim == 3 and name not in ("positions", "head_bias")  # one per network: (R, out, in)

    optimiser = training.adamw(model, betas=(0.9, 0.999), weight_decay=weight_decay, decays=is_matrix)
    losses = training.train(loss, optimiser, steps=steps, rate=lambda step: lr * min(1.0, (step + 1) / max(warmup, 1)))
    pairs = zip(test.images.split(batch_size), test.labels.split(batch_size), strict=True)
    return Trained(losses, *training.evaluate((model(images), labels) for images, labels in pairs))


@dataclass(frozen=True, kw_only=True)
class Trainability(Experiment):
    """SP-17: small vision transformers trained over depth, alpha and warm-up on generated classes, AdamW.

    Stands in for ViT-Base on CIFAR-100 (depths 12 to 36, 20 epochs). Rows: replicate, norm, alpha; loss (mean over the
    last tenth of the steps), test_loss, test_accuracy, log_pooled (the prediction) and log_measured at initialisation.
    """

    depths: tuple[int, ...] = (6, 12, 24, 36)
    warmups: tuple[int, ...] = (0, 100)
    alphas: tuple[float, ...] = (0.3, 0.6, 1.0, 1.6)
    replicates: int = 4
    width: int = 192
    num_heads: int = 3
    size: int = 64
    patch: int = 8
    num_classes: int = 100
    num_train: int = 20_000
    num_test: int = 2_000
    steps: int = 1000
    batch_size: int = 64
    lr: float = 1e-3

    tiers: ClassVar = {
        "ci": {
            **{"depths": (2,), "warmups": (0, 2), "alphas": (0.5, 1.5), "replicates": 2, "width": 24, "num_heads": 2},
            **{"size": 16, "num_classes": 4, "num_train": 64, "num_test": 32, "steps": 2, "batch_size": 8},
        },
        "cpu": {
            **{"depths": (3, 6, 12), "warmups": (0, 50), "alphas": (0.4, 0.8, 1.6), "replicates": 8, "width": 32},
            **{"num_heads": 2, "size": 32, "num_classes": 10, "num_train": 4000, "num_test": 500, "steps": 300},
            **{"batch_size": 16},
        },
        "gpu": {},
    }
    tiny: ClassVar = {"width": 12}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [
            {"norm": norm, "depth": depth, "warmup": warmup}
            for norm in ("layernorm", "erf")
            for depth in self.depths
            for warmup in self.warmups
        ]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm, depth, warmup = (condition[name] for name in ("norm", "depth", "warmup"))
        alphas = np.repeat((1.0,) if norm == "layernorm" else self.alphas, self.replicates)
        sets = [
            template_images(
                num,
                num_classes=self.num_classes,
                size=self.size,
                classes=stream(seed, "classes"),
                generator=stream(seed, name),
                dtype=dtype,
                device=device,
            )
            for name, num in (("train", self.num_train), ("test", self.num_test))
        ]
        sizes = {"image_size": self.size, "patch": self.patch, "width": self.width, "num_heads": self.num_heads}
        model = VisionTransformer(
            **sizes,
            depth=depth,
            num_classes=self.num_classes,
            norm=norm,
            alpha=alphas.tolist(),
            num_networks=len(alphas),
            generator=stream(seed, "trained weights", depth),
            dtype=dtype,
            device=device,
        )
        few = sets[1]._replace(images=sets[1].images[:16], labels=sets[1].labels[:16])
        states = model.states(few.images)
        loss = training.mean_cross_entropy(model.read_out(states[-1]), few.labels).sum()
        log_measured = gradient_amplification(loss, states)[:, 0].log().numpy()
        predicted = self._predicted(states[0].detach(), kernel_of(norm, alphas), depth)
        options = {"steps": self.steps, "batch_size": self.batch_size, "lr": self.lr, "warmup": warmup}
        run = train(model, *sets, **options, generator=stream(seed, "batches"))
        tail = max(1, self.steps // 10)
        replicate = np.tile(np.arange(self.replicates), len(alphas) // self.replicates)
        columns = {"loss": run.losses[:, -tail:].mean(dim=-1), "test_loss": run.test_loss}
        columns |= {"test_accuracy": run.test_accuracy, "log_pooled": predicted, "log_measured": log_measured}
        return rows({("replicate", "alpha"): (replicate, alphas)}, columns)

    def _predicted(self, h: Tensor, kernel: NormKernel, depth: int) -> np.ndarray:
        """ln of the pooled amplification, from the (q, p) of the embedded images h (R, images, n, d)."""
        q, p, _ = (each.mean(dim=-1).cpu().numpy() for each in token_moments(h))
        sigmas = Sigmas()
        common = {"a": sigmas.a, "s": sigmas.s, "n": h.shape[-2], "depth": depth, "output_gradient": "pooled"}
        return propagate(q, p, kernel=kernel, **common).log_J_backward[..., 0]
