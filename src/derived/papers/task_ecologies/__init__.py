"""Task ecologies and the evolution of world-tracking representations (Dalla Riva, arXiv 2604.05469).

A reader of text who sees only a code of the world pays an entropy that nobody can save and, for each cell of the code,
the Jensen-Shannon divergence of the distributions in it; a price on the code's entropy decides which distinctions are
kept, and a text of R letters pays for each of them once.

Read reference.py first, the mechanism in plain Python; then model/ecology.py, the loss of a code and of a text, and
model/codes.py, codes under a price.

>>> from derived.papers.task_ecologies import FiniteEcology, local_threshold, optimal_partition
>>> coins = FiniteEcology([1 / 3] * 3, [1.0], [[[0.9, 0.1]], [[0.8, 0.2]], [[0.1, 0.9]]])
>>> [optimal_partition(coins, beta).labels.tolist() for beta in (0.0, 0.1, 1.0)]
[[0, 1, 2], [0, 0, 1], [0, 0, 0]]
>>> round(local_threshold(coins), 4), round(coins.js_excess([0, 0, 1]), 4)
(0.0144, 0.0066)
"""

from derived.lab import face

__getattr__, __dir__, __all__ = face.attach(
    __name__,
    submod_attrs={
        "data.corpora": ["read_corpus"],
        "data.languages": ["language_family"],
        "model.codes": ["local_threshold", "optimal_partition", "partition_path", "split_gain"],
        "model.ecology": ["FiniteEcology", "letter", "mix", "repeated"],
        "model.gpt": ["GPTSize", "MicroGPT"],
        "model.partitions": ["bell_number", "is_refinement", "set_partitions"],
        "model.selection": ["price_terms", "quasispecies", "wright_fisher"],
    },
)
