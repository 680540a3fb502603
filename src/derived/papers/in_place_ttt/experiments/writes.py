"""The layer in all its forms against the definition, and the start of a converted model.

gap    the largest difference from the definition (a loop over chunks, autograd through it), or from what must be zero
bound  what rounding allows: eps times the terms of a sum times the same computation on absolute values
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.convert import convert_model, memories
from ..model.forms import chunk_grid, depthwise_target, in_place_ttt, increments
from ..model.parallel import context_parallel_scan
from ..model.stream import InPlaceTTTState


def gradient_steps(keys: Tensor, values: Tensor, w_down: Tensor, lr: float, chunk: int, loss: str = "linear") -> Tensor:
    """The layer by its definition: read a chunk, then one autograd step on its inner loss, outputs (B, n, d)."""
    W, outputs = w_down.expand(len(keys), *w_down.shape), []
    for one in chunk_grid(keys.shape[1], chunk):
        Z, V = (each[:, one.start : one.stop] for each in (keys, values))
        outputs.append(Z @ W.mT)
        state = W.detach().requires_grad_()
        predicted = Z.detach() @ state.mT
        inner = -(predicted * V).sum() if loss == "linear" else 0.5 * (predicted - V).square().sum()
        W = W - lr * torch.autograd.grad(inner, state)[0]
    return torch.cat(outputs, dim=1)


def squared_at_start(keys: Tensor, values: Tensor, w_down: Tensor, lr: float, chunk: int) -> Tensor:
    """The squared loss as if its steps were a prefix sum: every gradient taken at W_0."""
    return in_place_ttt(keys, values - keys @ w_down.mT, w_down, lr, chunk, impl="scan")


def in_ranks(keys: Tensor, values: Tensor, w_down: Tensor, lr: float, chunk: int, ranks: int = 3) -> Tensor:
    """The layer with its chunks on several ranks, one after the other here: totals first, then each rank alone."""
    share = -(-keys.shape[1] // (chunk * ranks)) * chunk  # whole chunks for every rank but the last
    parts = list(zip(keys.split(share, dim=1), values.split(share, dim=1), strict=True))
    deltas = [increments(Z, V, chunk) for Z, V in parts]
    totals = [each.sum(dim=-3) for each in deltas]
    states = [w_down + lr * context_parallel_scan(deltas[r], totals[:r]) for r in range(len(parts))]
    pairs = [
        (Z[:, one.start : one.stop], states[r][:, i])
        for r, (Z, _) in enumerate(parts)
        for i, one in enumerate(chunk_grid(Z.shape[1], chunk))
    ]
    return torch.cat([Z @ W.mT for Z, W in pairs], dim=1)


@dataclass(frozen=True, kw_only=True)
class Forms(Experiment):
    """IPT-1, 2, 3, 5, 9: random layers in every form, lengths that are no multiple of the chunk included.

    Rows: n, chunk, form, instance, gap, bound. Forms: gradient (autograd of the inner loss), scan, attention, lean,
    backward (the lean form's gradient), ranks, stream (three ways to cut a text), documents (packed against alone),
    old grid (packed, the grid of chunks not begun anew), chunks (the state after chunks of C and of 2C), squared (a
    prefix sum of the squared loss against its steps).
    """

    instances: int = 20
    cases: tuple[tuple[int, int], ...] = ((1, 1), (7, 3), (24, 4), (40, 8), (61, 16), (64, 1), (30, 50))
    d: int = 8
    h: int = 12
    lr: float = 0.3

    tiers: ClassVar = {"ci": {"instances": 4}}
    tiny: ClassVar = {"instances": 2, "cases": ((1, 1), (9, 4), (12, 3), (5, 8))}

    def conditions(self) -> list[dict]:
        return [{"n": n, "chunk": chunk} for n, chunk in self.cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, chunk = condition["n"], condition["chunk"]
        draw = stream(seed, "forms", n, chunk)
        normal = lambda *shape: torch.randn(*shape, generator=draw, dtype=dtype).to(device)  # noqa: E731
        keys, source = normal(self.instances, n, self.h) / self.h**0.5, normal(self.instances, n, self.d)
        kernel, projection, w_down = normal(self.d, 5), normal(self.d, self.d), normal(self.d, self.h)
        layer = (depthwise_target(source, kernel, projection, chunk=chunk), w_down, self.lr, chunk)
        eps = 2 * torch.finfo(dtype).eps * (n + self.h + 5 + 2 * self.d)  # terms of the longest sum, both sides rounded
        positive = depthwise_target(source.abs(), kernel.abs(), projection.abs(), chunk=chunk)
        bound = eps * in_place_ttt(keys.abs(), positive, w_down.abs(), self.lr, chunk, impl="loop").amax(dim=(1, 2))
        loop, gaps = in_place_ttt(keys, *layer, impl="loop"), {}
        for name in ("scan", "attention", "lean"):
            gaps[name] = in_place_ttt(keys, *layer, impl=name) - loop
        gaps["gradient"] = gradient_steps(keys, *layer) - loop
        gaps["ranks"] = in_ranks(keys, *layer) - loop
        gaps["squared"] = squared_at_start(keys, *layer) - gradient_steps(keys, *layer, loss="squared")
        gaps["stream"] = self.streamed(keys, source, kernel, projection, w_down, chunk, draw) - loop
        if n > 2:
            gaps |= self.packed(keys, source, kernel, projection, w_down, chunk)
        gaps["chunks"] = self.coarser(keys, *layer)
        found = {name: (each.abs().amax(dim=tuple(range(1, each.ndim))), bound) for name, each in gaps.items()}
        found["backward"] = self.backward(keys, *layer, eps)
        tables = [rows({"instance": range(self.instances)}, {"gap": g, "bound": b}) for g, b in found.values()]
        return pd.concat([table.assign(form=name) for name, table in zip(found, tables, strict=True)])

    def streamed(self, keys, source, kernel, projection, w_down, chunk, draw) -> Tensor:
        """The worst of three ways to cut the text: token by token, whole, at random."""
        n = keys.shape[1]
        cuts = [[1] * n, [n], torch.bincount(torch.randint(3, (n,), generator=draw), minlength=3).tolist()]
        outputs = []
        for sizes in cuts:
            state = InPlaceTTTState.begin(w_down, chunk=chunk, lr=self.lr, batch=(len(keys),))
            pieces = zip(keys.split(sizes, dim=1), source.split(sizes, dim=1), strict=True)
            outputs.append(torch.cat([state.step(*piece, kernel, projection) for piece in pieces], dim=1))
        whole = outputs[1]
        return whole + sum((each - whole).abs() for each in outputs)

    def packed(self, keys, source, kernel, projection, w_down, chunk) -> dict[str, Tensor]:
        """Two packed documents less the same two alone: with the grid begun anew, and on the old grid."""
        cut = (keys.shape[1] + 1) // 2

        def read(keys: Tensor, source: Tensor, starts=(0,)) -> Tensor:
            values = depthwise_target(source, kernel, projection, chunk=chunk, starts=starts)
            return in_place_ttt(keys, values, w_down, self.lr, chunk, starts=starts)

        alone = torch.cat([read(keys[:, :cut], source[:, :cut]), read(keys[:, cut:], source[:, cut:])], dim=1)
        old = (0, cut // chunk * chunk) if cut >= chunk else (0,)  # the chunk in which the document begins
        return {"documents": read(keys, source, (0, cut)) - alone, "old grid": read(keys, source, old) - alone}

    def coarser(self, keys, values, w_down, lr, chunk) -> Tensor:
        """The state after chunks of C less that after chunks of 2C, after the same tokens."""
        full = keys.shape[1] // (2 * chunk) * 2 * chunk
        if not full:  # no chunk of 2C: nothing to compare
            return torch.zeros_like(keys[:, :1])
        last = [
            in_place_ttt(keys[:, :full], values[:, :full], w_down, lr, size, return_state=True)[1]
            for size in (chunk, 2 * chunk)
        ]
        return (last[0] - last[1]).expand(len(keys), *w_down.shape)

    def backward(self, keys, values, w_down, lr, chunk, eps) -> tuple[Tensor, Tensor]:
        """Gradients of sum G * O by the lean form and by autograd through the loop, and what rounding allows."""
        upstream = torch.linspace(-1, 1, values[0].numel(), dtype=keys.dtype, device=keys.device).view(values[0].shape)

        def gradients(impl: str, sign=lambda x: x) -> list[Tensor]:
            inputs = [sign(each).clone().requires_grad_() for each in (keys, values, w_down.expand(len(keys), -1, -1))]
            outputs = in_place_ttt(*inputs, lr, chunk, impl=impl)
            found = torch.autograd.grad((sign(upstream) * outputs).sum(), inputs, allow_unused=True)
            return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]

        pairs = zip(gradients("lean"), gradients("loop"), gradients("loop", torch.abs), strict=True)
        ratios = [((a - b).abs().amax(dim=(1, 2)), eps * c.amax(dim=(1, 2))) for a, b, c in pairs]
        gap, allowed = (torch.stack(each) for each in zip(*ratios, strict=True))
        worst = (gap / allowed.clamp(min=torch.finfo(gap.dtype).tiny)).argmax(dim=0, keepdim=True)
        return gap.gather(0, worst).squeeze(0), allowed.gather(0, worst).squeeze(0).clamp(min=eps)


CONFIGS = {"qwen3": (Qwen3Config, Qwen3ForCausalLM), "llama": (LlamaConfig, LlamaForCausalLM)}


@dataclass(frozen=True, kw_only=True)
class Start(Experiment):
    """IPT-6: models of transformers with random weights before and after ``convert_model``, in float64.

    Rows: model, instance, quantity, size (the largest absolute entry), bound. Quantities: outputs (converted less
    unconverted logits), kernel, projection (gradients at the released start), kernel at zero (its gradient where the
    projection is zero, too), moved (logits after one step down the gradient less those before: the memory acts).
    """

    instances: int = 8
    tokens: int = 24
    width: int = 16

    tiers: ClassVar = {"ci": {"instances": 2}}
    tiny: ClassVar = {"instances": 1, "tokens": 12}

    def conditions(self) -> list[dict]:
        return [{"model": name} for name in CONFIGS]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found = [self.one(condition["model"], i, seed, device, dtype) for i in range(self.instances)]
        columns = {name: [each[name] for each in found] for name in found[0]}
        tables = [
            rows({"instance": range(self.instances)}, {"size": each, "bound": torch.finfo(dtype).eps}).assign(
                quantity=name
            )
            for name, each in columns.items()
        ]
        return pd.concat(tables)

    def one(self, name: str, instance: int, seed: int, device, dtype) -> dict[str, float]:
        config, cls = CONFIGS[name]
        sizes = {"hidden_size": self.width, "intermediate_size": 2 * self.width, "head_dim": self.width // 2}
        heads = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
        model = cls(config(vocab_size=40, pad_token_id=0, **sizes, **heads)).to(dtype)
        draw = stream(seed, "start", name, instance)
        with torch.no_grad():
            for weight in model.parameters():
                weight.copy_(torch.randn(weight.shape, generator=draw, dtype=dtype) * self.width**-0.5)
        model = model.to(device).eval()
        ids = torch.randint(1, 40, (2, self.tokens), generator=draw).to(device)
        before = model(ids, use_cache=False).logits.detach()
        convert_model(model, [0, 1], chunk=4)
        after = self.gradients(model, ids)
        biggest = lambda each: float(each.detach().abs().max())  # noqa: E731
        some = [(memory.ttt_kernel.grad, memory.ttt_projection.grad) for memory in memories(model)]
        sizes = {
            "outputs": biggest(after - before),
            "kernel": min(biggest(kernel) for kernel, _ in some),
            "projection": max(biggest(projection) for _, projection in some),
        }
        with torch.no_grad():
            for memory in memories(model):
                memory.ttt_kernel -= memory.ttt_kernel.grad / memory.ttt_kernel.grad.abs().max()
        sizes["moved"] = biggest(model(ids, use_cache=False).logits - before)
        with torch.no_grad():
            for memory in memories(model):
                memory.ttt_kernel.zero_()
                memory.ttt_projection.zero_()
        self.gradients(model, ids)
        return sizes | {"kernel at zero": max(biggest(memory.ttt_kernel.grad) for memory in memories(model))}

    def gradients(self, model, ids: Tensor) -> Tensor:
        """The logits, and the gradient of the loss in every weight."""
        model.zero_grad()
        found = model(ids, labels=ids, use_cache=False)
        found.loss.backward()
        return found.logits
