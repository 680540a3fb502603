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


def compare(
    rows: pd.DataFrame, norm: str, alpha: float, sigmas: Sigmas, start: tuple[float, float], n: int, depth: int
):
    """Measured rows with the recurrences beside them: at n tokens, and ``J_infinite`` for n to infinity first."""
    common = {"kernel": kernel_of(norm, alpha), "a": sigmas.a, "s": sigmas.s, "depth": depth}
    course = propagate(*start, n=n, **common)
    pooled = propagate(*start, n=n, output_gradient="pooled", **common)
    infinite = propagate(*start, n=np.inf, **common)
    without = propagate(*start, n=n, cross_token=False, **common)
    theory = {"q_theory": course.q, "p_theory": course.p, "J_theory": course.J_backward, "K_theory": course.K_backward}
    theory |= {"pooled_theory": pooled.J_backward, "J_infinite": infinite.J_backward}
    theory |= {"J_without_K": without.J_backward}
    return rows.assign(**{name: np.tile(v, len(rows) // (depth + 1)) for name, v in theory.items()})


def one_network(norm, alpha, sigmas, size, start, probes, seed, init, device, dtype) -> pd.DataFrame:
    """Measured rows of one initialisation with equiangular tokens; the same for every normaliser."""
    shape = {name: size[name] for name in ("width", "num_heads", "depth")}
    facts = {"norm": norm, "alpha": alpha, "sigmas": sigmas, "dtype": dtype, "device": device}
    model = RandomTransformer(**shape, **facts, generator=stream(seed, "vision weights", init))
    draw = stream(seed, "vision tokens", init)
    x = equiangular_tokens(size["n"], size["width"], *start, batch=(1,), generator=draw, dtype=dtype, device=device)
    return measure(model, x, probes=probes, generator=stream(seed, "vision probes", init))
