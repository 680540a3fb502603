"""Subcritical Signal Propagation at Initialization in Normalization-Free Transformers.

How much larger is a gradient at the input of a freshly drawn ViT-Base of 36 blocks than at its output? With LayerNorm,
and with erf(alpha x) in its place at two values of alpha:

>>> from derived.papers.signal_propagation import ErfKernel, LayerNormKernel, propagate, vit_variances
>>> a, s = vit_variances()
>>> network = {"a": a, "s": s, "n": 197, "depth": 36}
>>> round(float(propagate(1.0, 0.2, kernel=LayerNormKernel(), **network).J_backward[0]), 2)
6.34
>>> propagate(1.0, 0.2, kernel=ErfKernel([0.5, 1.5]), **network).J_backward[:, 0].round(2)
array([ 3.43, 31.25])

A kernel holds the Gaussian moments of a normaliser, ``propagate`` runs the recurrences, the functions after it are
their limits for many blocks; networks, and estimators of the same Jacobian norms, stand beside them.
"""

from derived.lab import face

__getattr__, __dir__, __all__ = face.attach(
    __name__,
    submod_attrs={
        "model.kernels": ["ElementwiseKernel", "ErfKernel", "LayerNormKernel", "TanhKernel"],
        "model.meanfield": ["propagate", "softmax_growth"],
        "model.asymptotics": ["lambda_stretched", "stretch_constant", "vit_variances", "zeta"],
        "model.transformer": ["RandomTransformer", "Sigmas", "equiangular_tokens"],
        "model.jacobian": ["apjn_exact", "apjn_hutchinson"],
    },
)
