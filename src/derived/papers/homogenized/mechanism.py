"""The mechanism of the chapter in one place: random heads, one layer, and the simulators of the chain.

module   holds
heads    the law of a head, the attention field, one layer, starting tokens
chain    the chain of tokens: literal and projected
gram     the chain of overlaps alone
"""

from .chain import overlaps, simulate_chain
from .gram import Chain, bartlett, default_record, gram_step, psd_factor, simulate_gram
from .heads import (
    HeadLaw,
    Heads,
    attention_field,
    barycentre,
    equiangular_tokens,
    layer_step,
    matched_law,
    normalise,
    simplex_gram,
    tangent,
    uniform_tokens,
)

__all__ = [
    "Chain",
    "HeadLaw",
    "Heads",
    "attention_field",
    "bartlett",
    "barycentre",
    "default_record",
    "equiangular_tokens",
    "gram_step",
    "layer_step",
    "matched_law",
    "normalise",
    "overlaps",
    "psd_factor",
    "simplex_gram",
    "simulate_chain",
    "simulate_gram",
    "tangent",
    "uniform_tokens",
]
