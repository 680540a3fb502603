"""SP-15 on timm's own ViT-Base with random weights, where timm happens to be installed.

timm needs torchvision, so it is no dependency; nothing is downloaded. Only its blocks are used: tokens in, tokens out.

symbol   name     meaning                                             axes
h^b      states   residual stream before block b, one network: R = 1  (1, *batch, n, d)
"""

from importlib.util import find_spec

import torch
from jaxtyping import Float
from torch import Tensor, nn

from derived.lab.checks import check_choice, check_count

from .transformer import NORMS, NormKind, Sigmas, checked_alpha, normalise


class Elementwise(nn.Module):
    """tanh(alpha x) or erf(alpha x), put in the place of a LayerNorm."""

    def __init__(self, norm: NormKind, alpha: Tensor):
        super().__init__()
        self.norm, self.alpha = norm, alpha

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """phi(x)."""
        return normalise(x, self.norm, self.alpha)


class TimmTransformer:
    """The blocks of timm's ``name``: ReLU for GELU, the normalisers replaced, weights N(0, 0.02^2) and biases 0. [repo]

    The weights have timm's law, drawn again from ``generator`` since timm's own draw takes none; no gradient. Raises
    ValueError where timm is not installed, for an unknown norm, depth < 1 or an alpha that is not one positive number.
    """

    def __init__(
        self,
        *,
        depth: int = 32,
        norm: NormKind,
        alpha: float = 1.0,
        name: str = "vit_base_patch16_224",
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ):
        check_choice("norm", norm, NORMS)
        check_count("depth", depth)
        if find_spec("timm") is None:
            raise ValueError("timm is not installed; use RandomTransformer, our own network")
        import timm

        slope = checked_alpha(alpha, 1, dtype, device)
        self.depth, self.sigmas = depth, Sigmas()
        self.blocks = timm.create_model(name, depth=depth, act_layer=nn.ReLU).eval().to(device, dtype).blocks
        self.blocks.requires_grad_(False)
        for block in self.blocks:
            block.attn.fused_attn = False  # batched gradients need the explicit softmax
            if norm != "layernorm":
                block.norm1, block.norm2 = Elementwise(norm, slope), Elementwise(norm, slope)
            for layer in (block.attn.qkv, block.attn.proj, block.mlp.fc1, block.mlp.fc2):
                drawn = torch.randn(layer.weight.shape, generator=generator, dtype=dtype, device=generator.device)
                layer.weight.copy_(0.02 * drawn)  # timm truncates at 2, which is 100 deviations

    def states(self, x: Float[Tensor, "1 *batch n d"], start: int = 0) -> list[Tensor]:
        """[h^start, ..., h^depth] from h^start = x, as ``RandomTransformer.states``."""
        states = [x]
        for block in self.blocks[start:]:
            flat = states[-1].flatten(0, -3)
            states.append(block(flat).unflatten(0, x.shape[:-2]))
        return states
