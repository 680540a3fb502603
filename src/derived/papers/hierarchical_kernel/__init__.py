"""Hierarchical Kernel Transformer (Cirrincione 2026): attention whose scores are a convex mixture of resolutions.

Read ``reference.py`` first (the layer in plain Python), then ``model/layers.py``: the layer and its rivals, over the
summaries of ``model/pyramid.py``. What is proved of them is computed in ``model/theory.py``; ``trained.py`` compares
them.

>>> import torch
>>> from derived.papers import hierarchical_kernel as hkt
>>> x = torch.linspace(-1, 1, 80).view(1, 10, 8)  # one network, ten tokens of width 8
>>> layer = hkt.HKTAttention(8, heads=2, levels=3)
>>> [tuple(table.shape[-2:]) for table in layer.scores.tables(x)]
[(10, 10), (5, 5), (3, 3)]
>>> layer(x).shape
torch.Size([1, 10, 8])
>>> hkt.evaluate_tokens(hkt.from_text("[MAX 2 9 [MIN 4 7 ] ]"))
9
"""

from derived.lab import face

# What a stranger imports, each name loaded on first use.
__getattr__, __dir__, __all__ = face.attach(
    __name__,
    submod_attrs={
        "data.listops": ["ListOps", "evaluate_tokens", "from_text"],
        "data.shallow": ["ShallowPredictor"],
        "model.classifier": ["SequenceClassifier"],
        "model.layers": ["CausalDownsample", "ConvQKAttention", "HKTAttention", "HierarchicalScores"],
        "model.theory": ["attention_flops", "symmetric_antisymmetric"],
    },
)
