"""Training of K microgpt models side by side, each on its own texts.

symbol   name     meaning                                              axes
K        K        models; a replicate is one or several of them        leading axis
-        texts    tokens for every step, one text a model and step     (steps, K, T + 1)
"""

from collections.abc import Callable

import torch
from torch import Tensor

from derived.lab import training
from derived.lab.nets import Draws

from .model.gpt import GPTSize, MicroGPT, text_losses


def build(size: GPTSize, models: int, seed: int, device, dtype, name: str = "gpt") -> MicroGPT:
    """Fresh models."""
    return MicroGPT(size, Draws(num_networks=models, seed=seed, layer=name, dtype=dtype, device=device))


def fit(
    model: MicroGPT, loss: Callable[[int], Tensor], *, steps: int, rate: Callable[[int], float], decay: float = 0.0
) -> Tensor:
    """Adam as microgpt has it, from moments of zero, and AdamW where weights decay: the loss before each step,
    (K, steps)."""
    fused = next(model.parameters()).device.type in ("cpu", "cuda")
    kind, facts = (torch.optim.AdamW, {"weight_decay": decay}) if decay else (torch.optim.Adam, {})
    optimiser = kind(model.parameters(), betas=(0.85, 0.99), fused=fused, **facts)
    return training.train(loss, optimiser, steps=steps, rate=rate)


def fit_texts(model: MicroGPT, texts: Tensor, *, rate: Callable[[int], float]) -> Tensor:
    """One text a model and step, (K, steps)."""

    def loss(step: int) -> Tensor:
        ids = texts[step].unsqueeze(1)
        return text_losses(model(ids[..., :-1]), ids[..., 1:]).mean(dim=(1, 2))

    return fit(model, loss, steps=len(texts), rate=rate)


def falling(rate: float, steps: int) -> Callable[[int], float]:
    """From ``rate`` in a straight line to zero."""
    return lambda step: rate * (1 - step / steps)
