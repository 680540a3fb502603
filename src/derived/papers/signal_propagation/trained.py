"""Vision transformers on generated images: gradients at initialisation, and training over depth, alpha and warm-up.

No photographs are downloaded. Fields with the power spectrum of natural images stand in for them, so these experiments
support the mechanism and do not repeat the paper's numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from .deep import kernel_of
from .images import power_law_images, template_images
from .jacobian import gradient_moments
from .meanfield import propagate
from .training import gradient_amplification, train
from .transformer import RandomTransformer, Sigmas, token_moments
from .vit import VisionTransformer, embed


@dataclass(frozen=True, kw_only=True)
class GeneratedImages(Experiment):
    """SP-16: J^{B,b} for 1/f images through a patch embedding, from the (q, p) measured at block ``start`` on.

    Stands in for CIFAR-100 at 224 pixels. Rows: init, replicate (an image), b, q, p, spread (of the overlaps of pairs),
    J, J_theory. The class token is left out, since the theory has one kind of token.
    """

    size: int = 224
    patch: int = 16
    width: int = 768
    num_heads: int = 12
    depth: int = 64
    start: int = 8
    alphas: tuple[float, ...] = (0.3, 0.5, 0.9)
    images: int = 24
    inits: int = 6

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"size": 32, "patch": 8, "width": 48, "num_heads": 2, "depth": 6, "start": 2, "images": 3, "inits": 2},
        "gpu": {},
    }
    dtype: ClassVar[torch.dtype] = torch.float32

    def conditions(self) -> list[dict[str, Any]]:
        cases = [("layernorm", 1.0), *(("erf", alpha) for alpha in self.alphas)]
        return [{"norm": norm, "alpha": alpha, "init": init} for norm, alpha in cases for init in range(self.inits)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm, alpha, init = (condition[name] for name in ("norm", "alpha", "init"))
        facts = {"norm": norm, "alpha": alpha, "num_heads": self.num_heads, "dtype": dtype, "device": device}
        draw = stream(seed, "image weights", init)
        model = RandomTransformer(width=self.width, depth=self.depth, generator=draw, **facts)
        draw = stream(seed, "images", init)
        images = power_law_images(self.images, self.size, generator=draw, dtype=dtype, device=device)
        with torch.no_grad():
            x = embed(images, width=self.width, patch=self.patch, class_token=False, generator=draw)
            for b in range(self.start):
                x = model.block(x, b)
        states = model.states(x.requires_grad_(), self.start)
        draw = stream(seed, "image probes", init)
        probe = torch.randn(states[-1].shape, generator=draw, dtype=dtype).to(device)
        J = gradient_moments(torch.autograd.grad(states[-1], states, grad_outputs=probe)).J[0]
        q, p, spread = (each[0].cpu().numpy() for each in token_moments(states[0].detach()))
        remaining = {"n": states[0].shape[-2], "depth": self.depth - self.start}
        common = {"kernel": kernel_of(norm, alpha), "a": model.sigmas.a, "s": model.sigmas.s, **remaining}
        theory = propagate(q, p, **common).J_backward
        layers = J.shape[-1]
        index = {"replicate": np.repeat(np.arange(self.images), layers)}
        index["b"] = np.tile(np.arange(self.start, self.depth + 1), self.images)
        facts = {name: np.repeat(each, layers) for name, each in (("q", q), ("p", p), ("spread", spread))}
        return pd.DataFrame({**index, **facts, "J": J.numpy().ravel(), "J_theory": theory.ravel()})


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {
            **{"depths": (2,), "warmups": (0, 2), "alphas": (0.5, 1.5), "replicates": 2, "width": 24, "num_heads": 2},
            **{"size": 16, "num_classes": 4, "num_train": 64, "num_test": 32, "steps": 2, "batch_size": 8},
        },
        "gpu": {},
    }
    dtype: ClassVar[torch.dtype] = torch.float32

    def conditions(self) -> list[dict[str, Any]]:
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
        log_measured = gradient_amplification(model, few)[:, 0].log().numpy()
        predicted = self._predicted(model, few.images, kernel_of(norm, alphas), depth)
        options = {"steps": self.steps, "batch_size": self.batch_size, "lr": self.lr, "warmup": warmup}
        found = train(model, *sets, **options, generator=stream(seed, "batches"))
        tail = max(1, self.steps // 10)
        index = {"replicate": np.tile(np.arange(self.replicates), len(alphas) // self.replicates), "alpha": alphas}
        columns = {"loss": found.losses[:, -tail:].mean(dim=-1), "test_loss": found.test_loss}
        columns["test_accuracy"] = found.test_accuracy
        columns = {name: values.numpy() for name, values in columns.items()}
        return pd.DataFrame({**index, **columns, "log_pooled": predicted, "log_measured": log_measured})

    def _predicted(self, model: VisionTransformer, images: torch.Tensor, kernel, depth: int) -> np.ndarray:
        """ln of the pooled amplification, from the (q, p) of the embedded images."""
        with torch.no_grad():
            h = model.states(images)[0]
        q, p, _ = (each.mean(dim=-1).cpu().numpy() for each in token_moments(h))
        sigmas = Sigmas()
        common = {"a": sigmas.a, "s": sigmas.s, "n": h.shape[-2], "depth": depth, "output_gradient": "pooled"}
        return propagate(q, p, kernel=kernel, **common).log_J_backward[..., 0]
