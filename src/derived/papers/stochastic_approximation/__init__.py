"""Stochastic approximation in non-Markovian environments revisited (Borkar, arXiv 2603.21091).

Two components, one iterate: a stream that is all of one component takes it to the root of that component; a fresh
component at each step takes it to the root of the mixture, which is no mean of the two.

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
        "data.environments": [
            "FractionalGaussian",
            "HeavyTailedRenewal",
            "InfiniteOrderLinear",
            "MarkovMixture",
            "Mixture",
            "PolyaUrn",
            "Telegraph",
            "environment",
        ],
        "model.attention": ["RunningSoftmaxAttention", "tilted_mean_gaussian"],
        "model.chains": ["absorption_probabilities", "closed_classes"],
        "model.core": ["StepSize", "polyak_ruppert", "robbins_monro"],
        "model.networks": ["TinyAttention"],
        "model.theory": [
            "linear_chain_moments",
            "lyapunov_covariance",
            "mean_field_root",
            "telegraph_variance",
        ],
    },
)
