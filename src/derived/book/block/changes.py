"""The mechanism of each paper as a change of the plain block, in the order of the book.

``slug`` names the paper. A change overrides methods of ``Plain`` and calls the paper's own functions; changes of
different methods stand together in one class, ``class Both(Sinkhorn, InPlaceTTT)``.
"""

import torch
from torch.nn import functional

from derived.book.block.plain import HEADS, VOCABULARY, WIDTH, Plain
from derived.lab.nets import linear, split_heads
from derived.papers.cactus import Cactus as Rule
from derived.papers.cactus import output_law
from derived.papers.geometric_tax.model.heads import blurred_labels, blurred_loss
from derived.papers.hierarchical_kernel import HierarchicalScores
from derived.papers.homogenized.model.heads import normalise as on_sphere
from derived.papers.in_place_ttt import depthwise_target, in_place_ttt
from derived.papers.ols_attention.model.mechanism import whitening
from derived.papers.signal_propagation.model.transformer import normalise
from derived.papers.sinkhorn import attention_weights
from derived.papers.stochastic_approximation import StepSize, robbins_monro
from derived.papers.task_ecologies import wright_fisher


class LeastSquares(Plain):
    """The weights are the hat matrix of the tokens: what is read is the least-squares fit of the values on them."""

    slug = "ols_attention"

    def weigh(self, x):
        k = split_heads(linear(x, self.W_K), HEADS)
        z = k @ whitening(k)
        return z @ z.mT / z.shape[-2]


class NormFree(Plain):
    """No statistics of a token: each coordinate goes through erf by itself."""

    slug = "signal_propagation"

    def norm(self, x):
        return normalise(x, "erf", alpha=1.0)


class Sphere(Plain):
    """Each step ends on the unit sphere, as the tokens of homogenized transformers do."""

    slug = "homogenized"
    eta = 0.5

    def add(self, x, change):
        return on_sphere(x + self.eta * change)


class DoublyStochastic(Plain):
    """Every token gives as much as it gets: columns of the weights sum to one as rows do, and no token is masked."""

    slug = "sinkhorn"

    def rows(self, scores):
        return attention_weights(scores, None, tol=1e-12)


class Hierarchical(Plain):
    """Scores are a convex mixture of several resolutions of the text."""

    slug = "hierarchical_kernel"

    def more_weights(self, draws):
        super().more_weights(draws)
        networks = {name: getattr(draws, name) for name in ("num_networks", "seed", "dtype")}
        self.levels = HierarchicalScores(WIDTH, HEADS, levels=3, **networks)

    def scores(self, x):
        return self.levels(x)


class Averaging(Plain):
    """A memory that moves a step towards each value, and asks no scores."""

    slug = "stochastic_approximation"
    step = StepSize.power()

    def mix(self, x, v):
        values, times = v.movedim(-2, 0), range(1, v.shape[-2] + 1)
        path = robbins_monro(lambda m, y: y - m, values, self.step, torch.zeros_like(values[0]), record=times)
        return path.x.movedim(0, -2)


class InPlaceTTT(Plain):
    """The down-projection is written, chunk by chunk, while the text is read."""

    slug = "in_place_ttt"
    chunk = 4
    lr = 0.1

    def more_weights(self, draws):
        super().more_weights(draws)
        self.taps = draws.full(torch.eye(3)[2].expand(1, WIDTH, 3))  # the next token of the chunk

    def mlp(self, x):
        keys = functional.gelu(linear(x, self.W_1))
        values = depthwise_target(x, self.taps, chunk=self.chunk)
        return in_place_ttt(keys, values, self.W_2.unsqueeze(1), self.lr, self.chunk)


class Cactus(Plain):
    """Not the block but the writing: a draft, here the model without its block, is kept within a budget."""

    slug = "cactus"
    budget = 1 / 16

    def emit(self, ids):
        draft = linear(self.embed(ids), self.W_U)[..., -1, :].softmax(dim=-1)
        return output_law(draft, super().emit(ids), Rule(self.budget))


class Ecology(Plain):
    """Not the block but the population: networks of lower loss have more offspring."""

    slug = "task_ecologies"

    @torch.no_grad()
    def breed(self, losses, generator):
        parents = torch.as_tensor(wright_fisher((-losses).exp(), len(losses), generator))
        for weight in self.parameters():
            weight.copy_(weight[parents])
        return parents


class NeighbouringCodes(Plain):
    """Not the block but the labels: tokens are codes on a line, and the loss knows which ones are neighbours."""

    slug = "geometric_tax"
    blur = 0.2

    def loss(self, logits, following):
        centres = torch.linspace(0, 1, VOCABULARY).to(logits).expand(len(logits), -1)
        return blurred_loss(logits, following.expand(logits.shape[:-1]), blurred_labels(centres, self.blur))


CHANGES = {each.slug: each for each in Plain.__subclasses__()}
