"""Networks as rows, with the recurrences beside them.

column       meaning                                                              per
q, p, spread second moment, overlap and its spread over pairs of tokens            replicate, b
J, K, pooled J^{B,b}, K^{B,b}, and J^{B,b} from a gradient common to all tokens    replicate, b
*_theory     the same from the recurrences; J_infinite: n to infinity first; J_without_K: K dropped
"""

import numpy as np
import pandas as pd
import torch

from derived.lab.rng import stream

from ..model.jacobian import apjn_hutchinson
from ..model.kernels import kernel_of
from ..model.meanfield import propagate
from ..model.transformer import RandomTransformer, Sigmas, equiangular_tokens, token_moments


def measure(model: RandomTransformer, x: torch.Tensor, *, probes: int, generator: torch.Generator) -> pd.DataFrame:
    """q, p, J, K and the pooled amplification of each network at each block; J, K are means over probes."""
    alone = apjn_hutchinson(model, x, num_probes=probes, generator=generator)
    pooled = apjn_hutchinson(model, x, num_probes=probes, generator=generator, output_gradient="pooled")
    with torch.no_grad():
        moments = [token_moments(h) for h in model.states(x)]
    q, p, spread = (torch.stack(values, dim=-1).cpu() for values in zip(*moments, strict=True))
    networks, layers = q.shape
    columns = {"q": q, "p": p, "spread": spread, "J": alone.J.mean(dim=1), "K": alone.K.mean(dim=1)}
    columns["pooled"] = pooled.J.mean(dim=1)
    index = {"replicate": np.repeat(np.arange(networks), layers), "b": np.tile(np.arange(layers), networks)}
    return pd.DataFrame(index | {name: values.numpy().ravel() for name, values in columns.items()})


def with_theory(
    rows: pd.DataFrame, norm: str, alpha: float, sigmas: Sigmas, start: tuple[float, float], n: int, depth: int
):
    """Measured rows with the recurrences beside them: at n tokens, and ``J_infinite`` for n to infinity first."""
    common = {"kernel": kernel_of(norm, alpha), "a": sigmas.a, "s": sigmas.s, "depth": depth}
    trajectory = propagate(*start, n=n, **common)
    pooled = propagate(*start, n=n, output_gradient="pooled", **common)
    infinite = propagate(*start, n=np.inf, **common)
    without = propagate(*start, n=n, cross_token=False, **common)
    theory = {"q_theory": trajectory.q, "p_theory": trajectory.p}
    theory |= {"J_theory": trajectory.J_backward, "K_theory": trajectory.K_backward}
    theory |= {"pooled_theory": pooled.J_backward, "J_infinite": infinite.J_backward}
    theory |= {"J_without_K": without.J_backward}
    return rows.assign(**{name: np.tile(v, len(rows) // (depth + 1)) for name, v in theory.items()})


def one_network(norm, alpha, sigmas, size, start, probes, seed, init, device, dtype) -> pd.DataFrame:
    """Measured rows of one initialisation with equiangular tokens; the same for every normaliser."""
    of_weights, of_tokens, of_probes = (
        stream(seed, f"vision {name}", init) for name in ("weights", "tokens", "probes")
    )
    where = {"dtype": dtype, "device": device}
    shape = {name: size[name] for name in ("width", "num_heads", "depth")}
    model = RandomTransformer(norm=norm, alpha=alpha, sigmas=sigmas, **shape, generator=of_weights, **where)
    x = equiangular_tokens(size["n"], size["width"], *start, batch=(1,), generator=of_tokens, **where)
    return measure(model, x, probes=probes, generator=of_probes)
