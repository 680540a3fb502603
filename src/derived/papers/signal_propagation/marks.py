"""The names of the normalisers, which the figures of the chapter share."""

NAMES = {"layernorm": "LayerNorm", "erf": "Derf", "tanh": "DyT"}
