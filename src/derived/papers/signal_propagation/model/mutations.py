"""Changes of one line that the chapter makes on purpose, to see what is lost.

q_hat, p_hat  second moments of the slope of the normaliser, with and without the factor 1/q
"""

import numpy as np

from .kernels import LayerNormKernel


class NoDivision(LayerNormKernel):
    """LayerNorm whose slope forgets to divide by q: its moments are 1 where they should be 1/q."""

    def moments(self, q, p):
        found = super().moments(q, p)
        return found._replace(q_hat=np.ones_like(found.q_hat), p_hat=np.ones_like(found.p_hat))
