"""A draft without a second model: the verifier's own first layers, as a causal language model.

symbol  name    meaning                                                    axes
k       depth   layers of the verifier that an early exit reads            scalar
X       early   what these layers make of a text                           (tokens, width)
Y       late    what all its layers make of it, as its read-out takes it   (tokens, width)
W       weight  of the trained head: X, scaled, with a one, times W        (width + 1, width)
"""

import copy

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import Gemma3ForCausalLM

RIDGE = 0.001  # of the mean square of a feature


def scaled(early: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch width_and_one"]:
    """Features of mean square one, and a one."""
    early = early / early.square().mean(dim=-1, keepdim=True).sqrt()
    return torch.cat([early, torch.ones_like(early[..., :1])], dim=-1)


class Head(nn.Module):
    """What stands before the read-out of an early exit: a norm, and one matrix."""

    def __init__(self, weight: Float[Tensor, "width_and_one width"]) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, early: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch width"]:
        return scaled(early) @ self.weight


class LikelyOnly(nn.Module):
    """A read-out that leaves only the ``most`` likely tokens: no draft proposes another."""

    def __init__(self, read_out: nn.Module, most: int) -> None:
        super().__init__()
        self.read_out, self.most = read_out, most

    def forward(self, states: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch V"]:
        logits = self.read_out(states)
        best = logits.topk(min(self.most, logits.shape[-1]), dim=-1)
        return torch.full_like(logits, -torch.inf).scatter_(-1, best.indices, best.values)


@torch.no_grad()
def trained_head(verifier: Gemma3ForCausalLM, pages: Int[Tensor, "pages length"], depth: int, skip: int = 32) -> Head:
    """The head that predicts the verifier's last states from those after ``depth`` layers: ridge regression on texts.

    The first ``skip`` tokens of a page, which have little before them, are left out.
    """
    read = (verifier.model(page[None], output_hidden_states=True).hidden_states for page in pages)
    pairs = [(states[depth][0, skip:], states[-1][0, skip:]) for states in read]
    early, late = (torch.cat(side).double() for side in zip(*pairs, strict=True))
    X = scaled(early)
    gram = X.mT @ X + RIDGE * len(X) * torch.eye(X.shape[1], dtype=X.dtype)
    return Head(torch.linalg.solve(gram, X.mT @ late).to(verifier.dtype))


def early_exit(verifier: Gemma3ForCausalLM, head: Head, depth: int, most: int) -> Gemma3ForCausalLM:
    """The verifier's own first layers with a head and its own read-out; all weights but the head's are shared."""
    config = copy.deepcopy(verifier.config)
    config.num_hidden_layers, config.layer_types = depth, config.layer_types[:depth]
    with torch.device("meta"):
        draft = type(verifier)(config)
    for name in ("embed_tokens", "rotary_emb"):
        setattr(draft.model, name, getattr(verifier.model, name))
    draft.model.layers, draft.model.norm = verifier.model.layers[:depth], head
    draft.lm_head = LikelyOnly(verifier.lm_head, most)
    return draft.eval()
