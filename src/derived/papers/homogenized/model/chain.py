"""The chain of tokens layer by layer, literally or with the noise projected onto what they can feel, and a torch stack.

method      draws                                             normals a layer and replica        tokens
literal     V, W, W' (d, d) for each head                     3 H d^2                            yes
projected   logits from Bartlett's factors, one value draw    H (3/2) k^2 + n d, k = min(n, d)    yes
gram        overlaps alone (module gram)                      H (3/2) k^2 + (3/2) n^2             no

``post_norm_block`` is a layer of a torch stack at initialisation, with which the law of the odds is compared.

All three give the overlaps the same distribution, the first two also the tokens; `gram` says why. [ours]
"""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from derived.lab.checks import check_at_least, check_choice, check_count, check_factored, check_one_dtype
from derived.lab.nets import layer_norm, merge_heads, normal, split_heads

from .checks import check_on_sphere
from .gram import Chain, attention_probabilities, check_run, psd_factor, simulate_gram, value_factor
from .heads import HeadLaw, normalise

Method = Literal["literal", "projected", "gram"]


@torch.no_grad()
def simulate_chain(
    X0: Float[Tensor, "R n d"],
    L: int,
    eta: float,
    H: int,
    law: HeadLaw,
    beta: float,
    *,
    generator: torch.Generator,
    method: Method = "projected",
    record: Sequence[int] | None = None,
    keep_tokens: bool = False,
    common: bool = True,
) -> Chain:
    """L layers of x <- N(x + (eta/H) sum_h V_h m_h(x)) with fresh heads in every layer and replica. [digest]

    Shapes: X0 (R, n, d) on the generator's device, in the dtype of the run; the clock of layer l is eta^2 l / H.
    ``record`` lists the layers to keep, None the first and the last. Overlaps are right as long as 1 - R_ij exceeds
    n unit roundoffs (float64: 1e-15 n); the literal method has no such floor in its tokens. ``common`` False is the
    negative control: a value matrix for each token, the same noise strength, no common noise. The literal method's
    weights depend on (R, H, d) and the generator alone, so two prompts run with generators of the same state feel the
    same weights. ValueError for tokens off the sphere, a dtype that does not serve, a step that overshoots, an unknown
    method.

    >>> from derived.lab.rng import stream
    >>> from derived.papers.homogenized import equiangular_tokens, matched_law
    >>> X = equiangular_tokens(8, 16, 0.0, replicas=100)
    >>> chain = simulate_chain(X, 80, 0.2, 1, matched_law(16, 1.0), 1.0, generator=stream(0, "weights"))
    >>> m = chain.mean_overlap  # (2, 100): at the clocks 0 and 3.2, where 1 is collapse
    >>> bool(m[0].mean() < 0.13), bool(m[1].mean() > 0.5)
    (True, True)
    """
    check_choice("method", method, get_args(Method))
    if X0.ndim != 3 or X0.shape[-1] != law.d:
        raise ValueError(f"tokens of shape {tuple(X0.shape)}: give (replicas, n, d) with d = {law.d}")
    check_on_sphere(X0)
    if method != "literal":
        check_factored(X0=X0)
    if method == "gram":
        if keep_tokens:
            raise ValueError("method='gram' has overlaps only: keep_tokens needs 'literal' or 'projected'")
        return simulate_gram(overlaps(X0), L, eta, H, law, beta, generator=generator, record=record, common=common)
    layers = check_run(L, eta, H, law, beta, record)
    step = literal_step if method == "literal" else projected_step
    X, grams, tokens = X0, [], []
    for layer in range(L + 1):
        if layer:
            X = step(X, eta, H, law, beta, generator=generator, common=common)
        if layer in layers:
            grams.append(overlaps(X))
            tokens += [X] if keep_tokens else []
    tau = tuple(eta**2 * layer / H for layer in layers)
    return Chain(layers, tau, torch.stack(grams), torch.stack(tokens) if keep_tokens else None)


def overlaps(X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n n"]:
    """R_ij = <x_i, x_j>, with exact ones on the diagonal."""
    G = X @ X.mT
    G.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    return G


@torch.no_grad()
def literal_step(X: Tensor, eta: float, H: int, law: HeadLaw, beta: float, *, generator, common: bool = True) -> Tensor:
    """One layer with all its matrices: U = X W, U' = X W', M = softmax(beta U U'^T) X, increment M V^T."""
    R, n, d = X.shape
    factory = {"generator": generator, "device": generator.device, "dtype": X.dtype}
    V = law.value_std * torch.randn(R, 1 if common else n, H, d, d, **factory)
    W, W_ = (law.sigma_a * torch.randn(R, H, d, d, **factory) for _ in range(2))
    each = X.unsqueeze(1)
    queries, keys = each @ W, each @ W_
    M = scaled_dot_product_attention(queries, keys, each.expand(R, H, n, d), scale=beta)
    noise = torch.einsum("rhnd,rhed->rne", M, V[:, 0]) if common else torch.einsum("rhnd,rnhed->rne", M, V)
    return normalise(X + eta / H * noise)


@torch.no_grad()
def projected_step(
    X: Tensor, eta: float, H: int, law: HeadLaw, beta: float, *, generator, common: bool = True
) -> Tensor:
    """One layer without a (d, d) matrix: attention from the overlaps, one (k, d) normal matrix for the values."""
    R, n, d = X.shape
    C = psd_factor(overlaps(X), n) if n < d else X
    Pi = attention_probabilities(C, law, beta, H, generator=generator)
    # sigma_V sum_h Pi_h X V_h^T is one Gaussian matrix with row covariance sigma_V^2 F F^T
    F = value_factor(C, Pi, H, common=common)
    Z = torch.randn(R, F.shape[-1], d, generator=generator, device=generator.device, dtype=X.dtype)
    return normalise(torch.baddbmm(X, F, Z, alpha=eta * law.value_std / H))


def post_norm_block(
    x: Float[Tensor, "R n d"], scale: float, H: int, *, generator: torch.Generator, causal: bool = False
) -> Float[Tensor, "R n d"]:
    """x <- LayerNorm(x + scale * MultiHead(x)) with fresh weights of variance 1/d in every replica: attention alone, as
    torch has it at initialisation, H heads of width d/H each, concatenated; h = scale^2 whatever H. [ours]

    Shapes: x (R, n, d) gives (R, n, d). ``causal`` lets token i attend to tokens 1 .. i. Differentiable in x.
    ValueError for other shapes, a d that H does not divide, a negative scale, a dtype that does not serve.

    >>> from derived.lab.rng import stream
    >>> post_norm_block(torch.eye(4).expand(3, 4, 4), 1.0, 2, generator=stream(0, "block")).shape
    torch.Size([3, 4, 4])
    """
    check_one_dtype(x=x)
    check_count("H", H)
    check_at_least("scale", scale, 0)
    if x.ndim != 3 or x.shape[-1] % H:
        raise ValueError(f"x of shape {tuple(x.shape)} with H = {H}: give (replicas, n, d) with d a multiple of H")
    R, _, d = x.shape
    weight = {"std": d**-0.5, "generator": generator, "dtype": x.dtype, "device": x.device}
    queries, keys, values = (split_heads(x @ normal(R, d, d, **weight), H) for _ in range(3))
    mixed = merge_heads(scaled_dot_product_attention(queries, keys, values, is_causal=causal))
    return layer_norm(x + scale * mixed @ normal(R, d, d, **weight))
