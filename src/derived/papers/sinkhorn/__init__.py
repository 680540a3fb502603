"""Sinkhorn attention and contextual relations (Fraiman, arXiv 2603.25860; Sander et al. 2022).

Read ``reference.py`` first, then ``model/plan.py``: one iteration, from which softmax, Sinkhorn's plan and its
half-steps are made. ``model/blocks.py`` builds the approximator of the main theorem; experiment, claims and figure of a
topic stand together in ``plans``, ``rates``, ``relations``, ``approximation``, ``trained`` and ``real``.

Three tokens whose scores all prefer the first. Softmax lets it receive nearly everything; Sinkhorn gives every token as
much as it gives:

>>> import torch
>>> from derived.papers.sinkhorn import attention_weights
>>> scores = torch.tensor([[3.0, 1.0, 0.0], [3.0, 0.0, 1.0], [3.0, 0.0, 0.0]])
>>> attention_weights(scores, 1).sum(dim=0)
tensor([2.5970, 0.2015, 0.2015])
>>> attention_weights(scores, None).sum(dim=0)
tensor([1.0000, 1.0000, 1.0000])
"""

from derived.lab import face

__getattr__, __dir__, __all__ = face.attach(
    __name__,
    submod_attrs={
        "model.attention": ["CouplingTransformer", "SinkhornTransformer", "attention_weights", "sinkhorn_attention"],
        "model.backward": ["implicit_vjp", "sinkhorn_plan"],
        "model.blocks": ["block_bound", "block_kernel", "conditional_kernel"],
        "model.couplings": ["comonotone", "coupling_w1", "crossed"],
        "model.plan": ["entropic_plan", "half_steps", "sinkhorn", "sinkhorn_symmetric"],
        "model.theory": ["birkhoff_coefficient", "hilbert_distance", "local_rate"],
    },
)
