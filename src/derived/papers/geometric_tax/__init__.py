"""The geometric alignment tax (Raju, arXiv 2604.04155): what tokens do to the geometry of hidden states.

Cross-entropy does not know that bin 17 lies beside bin 18. Where labels are sharp, the curve that a perfect model draws
is a staircase, of length pi for each boundary; where they are blurred it is the line.

Read ``model/metrics.py`` first, on what distortion measures, then ``model/labels.py`` on the staircase; the trained
networks of the figures come from ``trained.py``.

>>> import math
>>> from derived.papers.geometric_tax import fisher_rao_length
>>> [round(fisher_rao_length(K, 1e-4) / math.pi, 3) for K in (2, 8, 32)]
[1.0, 7.0, 31.0]
>>> [round(fisher_rao_length(K, 0.02), 1) for K in (32, 256, 1024)]  # 1 / sigma = 50
[44.9, 49.8, 49.9]
"""

from derived.lab import face

__getattr__, __dir__, __all__ = face.attach(
    __name__,
    submod_attrs={
        "data.sequences": ["kmer_counts", "reverse_complement"],
        "data.systems": ["lorenz", "oscillators", "waveforms"],
        "model.encoders": ["CausalConvolution", "CausalTransformer", "Size", "StateSpace"],
        "model.heads": ["blurred_labels"],
        "model.information": ["mine"],
        "model.labels": ["fisher_rao_length"],
        "model.metrics": ["jump_and_spread", "procrustes_distortion", "rdm_similarity"],
        "model.tokens": ["LloydMax", "shannon_lower_bound"],
    },
)
