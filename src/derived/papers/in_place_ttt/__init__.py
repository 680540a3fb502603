"""In-Place Test-Time Training: the down-projection of a gated MLP as a memory that is written while it is read.

Read ``reference.py`` first, seventy lines of plain Python; then ``model/forms.py`` for keys, values and the loop, and
``model/convert.py`` for models of Hugging Face.

>>> import torch
>>> from derived.papers.in_place_ttt import in_place_ttt
>>> letters = torch.eye(2)[[0, 1, 0]]  # a b a, in chunks of two
>>> following = torch.tensor([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])  # the value of a letter is the next one of its chunk
>>> in_place_ttt(letters, following, torch.zeros(2, 2), lr=1.0, chunk=2)[2]  # asked for a, it answers b
tensor([0., 1.])
"""

from derived.lab import face

# What a stranger imports: 8 to 20 names, each loaded on first use.
__getattr__, __dir__, __all__ = face.attach(
    __name__,
    submod_attrs={
        "conditions": ["self_tests"],
        "data": ["bigram_documents", "mqar", "ruler_like"],
        "model.baselines": ["delta_rule", "gated_linear_attention", "linear_attention"],
        "model.convert": ["convert_model"],
        "model.forms": ["depthwise_target", "gated_mlp_keys", "in_place_ttt", "read_mask"],
        "model.module": ["InPlaceTTTMLP", "memory_off"],
        "model.stream": ["InPlaceTTTState"],
        "model.theory": ["capacity", "reach"],
    },
)
