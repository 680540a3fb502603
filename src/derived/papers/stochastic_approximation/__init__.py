"""Stochastic approximation in non-Markovian environments revisited (Borkar, arXiv 2603.21091).

Read ``reference.py`` first: the chapter in plain Python. Then ``model/core.py``, the one loop, and ``worlds.py``.

Two worlds, one learner: a stream that is all of one world takes it to the root of that world; a fresh world at each
step takes it to the root of the mean field, which is no mean of the two.

>>> import torch
>>> from derived.papers.stochastic_approximation import Mixture, StepSize, mean_field_root, robbins_monro
>>> A, b = torch.tensor([2.0, 0.5]).double(), (1.0, 2.0)
>>> [round(float(root), 3) for root in (*mean_field_root(A, b), mean_field_root(A, b, weights=[0.5, 0.5]))]
[0.5, 4.0, 1.2]
>>> y, k = Mixture(b, (0.5, 0.5), (0.5, 0.5)).draw(5000, 6, torch.Generator().manual_seed(0))
>>> x = robbins_monro(lambda x, y: y - A[k] * x, y, StepSize.power(2.0, n0=4), torch.zeros(6).double()).x[-1]
>>> bool(((x - torch.tensor([0.5, 4.0])[k]).abs() < 0.1).all())
True
"""

from derived.lab import face

__getattr__, __dir__, __all__ = face.attach(
    __name__,
    submod_attrs={
        "data": ["Coins", "HeavyTailedRenewal", "Mixture", "Telegraph"],
        "model.attention": ["RunningSoftmaxAttention", "self_fed_attention", "tilted_mean_gaussian"],
        "model.core": ["StepSize", "robbins_monro"],
        "model.networks": ["TinyAttention"],
        "model.predictors": ["bayes_predictive"],
        "model.theory": ["mean_field_root", "telegraph_variance"],
    },
)
