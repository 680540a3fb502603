"""Networks as rows, with the recurrences beside them.

column       meaning                                                              per
q, p, spread second moment, overlap and its spread over pairs of tokens            replicate, b
J, K, pooled J^{B,b}, K^{B,b}, and J^{B,b} from a gradient common to all tokens    replicate, b
*_theory     the same from the recurrences; J_infinite: n to infinity first; J_without_K: K dropped
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from derived.lab.experiment import rows

from .model.jacobian import apjn_hutchinson
from .model.kernels import kernel_of
from .model.meanfield import propagate
from .model.transformer import RandomTransformer, Sigmas, token_moments


def moments_by_block(model: RandomTransformer, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q, p and the spread of p over pairs of tokens in front of each block, on the CPU: (R, depth + 1) each."""
    with torch.no_grad():
        moments = [token_moments(h) for h in model.states(x)]
    return tuple(torch.stack(values, dim=-1).cpu() for values in zip(*moments, strict=True))


def measure(
    model: RandomTransformer,
    x: Tensor,
    *,
    probes: int,
    generator: torch.Generator,
    theory: Mapping[str, ArrayLike] | None = None,
) -> pd.DataFrame:
    """q, p, J, K and the pooled amplification of each network at each block; J, K are means over probes.

    ``theory``: columns by block (depth + 1,) that stand beside the measured ones.
    """
    alone = apjn_hutchinson(model, x, num_probes=probes, generator=generator)
    pooled = apjn_hutchinson(model, x, num_probes=probes, generator=generator, output_gradient="pooled")
    q, p, spread = moments_by_block(model, x)
    columns = {"q": q, "p": p, "spread": spread, "J": alone.J.mean(dim=1), "K": alone.K.mean(dim=1)}
    columns["pooled"] = pooled.J.mean(dim=1)
    return rows({"replicate": range(len(q)), "b": range(q.shape[1])}, columns | dict(theory or {}))


def recurrences(norm: str, alpha: float, sigmas: Sigmas, q0: float, p0: float, n: int, depth: int) -> dict:
    """The recurrences by block (depth + 1,): at n tokens, for n to infinity first, and with K dropped."""
    common = {"kernel": kernel_of(norm, alpha), "a": sigmas.a, "s": sigmas.s, "depth": depth}
    trajectory = propagate(q0, p0, n=n, **common)
    return {
        "q_theory": trajectory.q,
        "p_theory": trajectory.p,
        "J_theory": trajectory.J_backward,
        "K_theory": trajectory.K_backward,
        "pooled_theory": propagate(q0, p0, n=n, output_gradient="pooled", **common).J_backward,
        "J_infinite": propagate(q0, p0, n=np.inf, **common).J_backward,
        "J_without_K": propagate(q0, p0, n=n, cross_token=False, **common).J_backward,
    }
