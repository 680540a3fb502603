"""Cactus: Constrained Acceptance Speculative Sampling (Hao and Mou, arXiv 2604.04987).

Read ``reference.py`` first, the mechanism in plain Python; then ``model/rules.py``, ``model/sampler.py`` for a block
and ``model/generate.py`` for whole texts.

A draft p and a verifier q over three tokens. Exact speculative sampling keeps two drafts in three; Cactus with a budget
of 1/16 nats keeps every one, and emits the draft's own distribution:

>>> import torch
>>> from derived.papers.cactus import Cactus, SpS, acceptance_rate, divergence, output_law
>>> p, q = torch.tensor([0.5, 0.5, 0.0]), torch.full((3,), 1 / 3)
>>> for rule in (SpS(), Cactus(1 / 16)):
...     emitted = output_law(p, q, rule)
...     print(f"{acceptance_rate(p, q, rule):.3f} kept, {divergence(emitted, q):.3f} nats from the verifier")
0.667 kept, 0.000 nats from the verifier
1.000 kept, 0.405 nats from the verifier
"""

from derived.lab import face

__getattr__, __dir__, __all__ = face.attach(
    __name__,
    submod_attrs={
        "model.divergences": ["divergence", "gamma_constrained"],
        "model.exact": ["acceptance_rate", "output_law", "sequence_law"],
        "model.generate": ["speculative_generate"],
        "model.rules": [
            "Cactus",
            "Calibrated",
            "Interp",
            "Lenience",
            "Mentored",
            "SpS",
            "TopK",
            "Typical",
        ],
        "model.sampler": ["accept_reject"],
        "model.theory": ["expected_accepted", "gamma_cactus", "mentored_law"],
    },
)
