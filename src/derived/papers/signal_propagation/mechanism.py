"""The mechanism of the chapter in one place: random transformers, their tokens, and the estimators of the APJN.

module        holds
transformer   RandomTransformer, equiangular tokens, their statistics
jacobian      the APJN: exact, one backward for all layers, one forward-mode pass
images        generated images
vit           the embedding of ViT-Base, and a small vision transformer that trains
timm_vit      timm's own ViT-Base, where timm is installed (imported from there)
"""

from .images import LabelledImages, patches, power_law_fields, power_law_images, template_images
from .jacobian import Apjn, apjn_exact, apjn_hutchinson, apjn_jvp, gmfe, gradient_moments
from .transformer import (
    BlockWeights,
    RandomTransformer,
    Sigmas,
    attention_weights,
    equiangular_tokens,
    normalise,
    token_moments,
)
from .vit import VisionTransformer, embed

__all__ = [
    "Apjn",
    "BlockWeights",
    "LabelledImages",
    "RandomTransformer",
    "Sigmas",
    "VisionTransformer",
    "apjn_exact",
    "apjn_hutchinson",
    "apjn_jvp",
    "attention_weights",
    "embed",
    "equiangular_tokens",
    "gmfe",
    "gradient_moments",
    "normalise",
    "patches",
    "power_law_fields",
    "power_law_images",
    "template_images",
    "token_moments",
]
