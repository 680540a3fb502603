"""The names of the normalisers, which the figures of the chapter share."""

NAMES = {"layernorm": "pre-LayerNorm", "erf": "Derf", "tanh": "DyT"}
