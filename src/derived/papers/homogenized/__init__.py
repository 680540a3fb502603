"""Homogenized Transformers: tokens on the sphere under random heads that are drawn anew in every layer.

Tokens collapse on the clock tau = eta^2 layer / H, however many heads there are; how fast depends on the temperature,
which enters as the standard deviation of a logit:

>>> from derived.papers.homogenized import layers_for, time_to_overlap
>>> hot, cold = time_to_overlap(128, logit_std=0.0), time_to_overlap(128, logit_std=float("inf"))
>>> round(hot, 2), round(cold, 1)  # the clock at which orthogonal tokens have the overlap 1/2
(4.86, 25.3)
>>> layers_for(cold, eta=0.1, H=4)
10111

Read ``model/heads.py`` first (a head and a layer), then ``model/overlaps.py`` (what layers do to overlaps, and the
clock); ``model/gram.py`` simulates deep stacks at any width.
"""

from derived.lab import face

__getattr__, __dir__, __all__ = face.attach(
    __name__,
    submod_attrs={
        "model.chain": ["simulate_chain"],
        "model.cloud": ["slow_overlap_sde", "vmf_mean_ratio"],
        "model.flows": ["layers_for", "scaling_regime"],
        "model.heads": ["HeadLaw", "attention_field", "equiangular_tokens", "layer_step", "matched_law"],
        "model.moments": ["attention_moments", "rem_participation"],
        "model.overlaps": [
            "barycenter_correlation",
            "logistic_overlap",
            "overlap_bracket",
            "overlap_drift",
            "simplex_drift",
            "time_to_overlap",
        ],
        "model.two_token": ["two_token_attention_moments", "two_token_pde"],
    },
)
