"""The target of an encoder: the next label, sharp, soft or with a distance, or the next value itself.

symbol   name      meaning                                                              axes
R        R         independent networks, each with its own bins                         leading axis
K        codes     number of bins
y        labels    the bin of the next value                                            (R, *items) integer
x        values    the next value as a share of the range                               (R, *items)
c        centres   what each bin decodes to, shares of the range                        (R, K)
-        outputs   what the head gives                                                  (R, *items, outputs)
-        losses    mean over the items                                                  (R,)
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from derived.lab.checks import check_positive


def blurred_labels(centres: Float[Tensor, "R K"], blur: float) -> Float[Tensor, "R K K"]:
    """Row y: the distribution that stands in for label y, proportional to exp(-(c_k - c_y)^2 / 2 blur^2).

    It is made of the label alone: nothing of the value that the bin does not tell. ValueError unless blur > 0.

    >>> blurred_labels(torch.tensor([[0.0, 1.0]]), blur=1e-3)
    tensor([[[1., 0.],
             [0., 1.]]])
    """
    check_positive("blur", blur)
    apart = (centres.unsqueeze(-1) - centres.unsqueeze(-2)) / blur
    return torch.softmax(-apart.square() / 2, dim=-1)


def smoothed_labels(like: Float[Tensor, "R K K"]) -> Float[Tensor, "R K K"]:
    """Labels as soft as those of a table and without its order: (1 - e) I + e / K, of the table's mean entropy.

    >>> smoothed_labels(torch.tensor([[[0.75, 0.25], [0.25, 0.75]]]))
    tensor([[[0.7500, 0.2500],
             [0.2500, 0.7500]]])
    """
    K, wanted = like.shape[-1], torch.special.entr(like.double()).sum(dim=-1).mean(dim=-1)
    low, high = torch.zeros_like(wanted), torch.ones_like(wanted)
    for _ in range(60):  # the entropy rises with e
        e = (low + high) / 2
        own, other = 1 - e + e / K, e / K
        below = torch.special.entr(own) + (K - 1) * torch.special.entr(other) < wanted
        low, high = torch.where(below, e, low), torch.where(below, high, e)
    e = low.to(like)[:, None, None]
    return (1 - e) * torch.eye(K, dtype=like.dtype, device=like.device) + e / K


def nearest_label(outputs: Float[Tensor, "R *items K"], table: Float[Tensor, "R K K"]) -> Int[Tensor, "R *items"]:
    """The label whose own row of the table is nearest to the softmax's distribution, in relative entropy.

    >>> nearest_label(torch.tensor([[[0.3, 0.1]]]), torch.eye(2)[None])
    tensor([[0]])
    """
    flat = outputs.flatten(1, -2).log_softmax(dim=-1)
    known = torch.special.entr(table).sum(dim=-1).unsqueeze(1)
    return (flat @ table.mT + known).argmax(dim=-1).view(outputs.shape[:-1])


def blurred_loss(
    outputs: Float[Tensor, "R *items K"], labels: Int[Tensor, "R *items"], blurred: Float[Tensor, "R K K"]
) -> Float[Tensor, "R"]:
    """Cross-entropy against the blurred distribution of each label: - sum_k blurred_yk ln softmax(outputs)_k."""
    each = torch.arange(len(labels), device=labels.device).view(-1, *[1] * (labels.ndim - 1))
    return -(blurred[each, labels] * outputs.log_softmax(dim=-1)).sum(dim=-1).flatten(1).mean(dim=-1)


def squared_loss(outputs: Float[Tensor, "R *items d"], targets: Float[Tensor, "R *items d"]) -> Float[Tensor, "R"]:
    """The squared distance to a value or to a code, summed over its coordinates."""
    return (outputs - targets).square().sum(dim=-1).flatten(1).mean(dim=-1)


def expected_value(outputs: Float[Tensor, "R *items K"], centres: Float[Tensor, "R K"]) -> Float[Tensor, "R *items"]:
    """The mean of a softmax's distribution over the values of its bins: what it predicts.

    >>> expected_value(torch.zeros(1, 5, 2), torch.tensor([[0.0, 1.0]]))
    tensor([[0.5000, 0.5000, 0.5000, 0.5000, 0.5000]])
    """
    items = [1] * (outputs.ndim - 2)
    return (outputs.softmax(dim=-1) * centres.view(len(centres), *items, -1)).sum(dim=-1)


def cumulative_loss(outputs: Float[Tensor, "R *items K"], labels: Int[Tensor, "R *items"]) -> Float[Tensor, "R"]:
    """The squared distance of two cumulative distributions, of the softmax and of the label: ranked probability score.

    >>> far = torch.tensor([[[9.0, 0.0, 0.0]]])  # all on label 0
    >>> [round(cumulative_loss(far, torch.tensor([[y]])).item(), 2) for y in (0, 1, 2)]
    [0.0, 1.0, 2.0]
    """
    said = outputs.softmax(dim=-1).cumsum(dim=-1)
    true = (torch.arange(outputs.shape[-1], device=labels.device) >= labels.unsqueeze(-1)).to(said)
    return (said - true).square().sum(dim=-1).flatten(1).mean(dim=-1)
