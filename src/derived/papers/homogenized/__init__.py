"""Homogenized Transformers: tokens on the sphere under random heads, drawn afresh in every layer.

A wide layer with uniform attention multiplies the odds of the mean overlap by 1 + h, h = eta^2 / H, so tokens gather on
the clock tau = eta^2 layer / H; how fast depends on the temperature, which enters as the standard deviation of a logit:

>>> from derived.papers.homogenized import layers_for, odds_after, time_to_overlap
>>> float(odds_after(0.25, h=1.0, layers=3).round(3))  # odds 1/3 become 8/3
0.727
>>> hot, cold = time_to_overlap(128, logit_std=0.0), time_to_overlap(128, logit_std=float("inf"))
>>> round(hot, 2), round(cold, 1)  # the clock at which orthogonal tokens have the overlap 1/2
(4.86, 25.3)
>>> layers_for(cold, eta=0.1, H=4)
10111

There is no MLP, and no mask except in ``post_norm_block``. Read ``reference.py`` first (a layer in plain Python), then
``model/heads.py`` (a head and a layer) and ``model/overlaps.py`` (what layers do to overlaps, and the clock);
``model/gram.py`` simulates deep stacks at any width.
"""

from derived.lab import face

__getattr__, __dir__, __all__ = face.attach(
    __name__,
    submod_attrs={
        "model.chain": ["post_norm_block", "simulate_chain"],
        "model.heads": ["HeadLaw", "equiangular_tokens", "layer_step", "matched_law"],
        "model.moments": ["attention_moments"],
        "model.overlaps": [
            "layers_for",
            "logistic_overlap",
            "odds_after",
            "overlap_bracket",
            "overlap_drift",
            "simplex_drift",
            "time_to_overlap",
            "wide_layer",
        ],
    },
)
