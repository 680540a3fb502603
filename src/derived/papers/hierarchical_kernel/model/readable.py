"""A layer with weights chosen by hand, so that its score tables can be read: kinds of symbols and nesting depth.

symbol   name      meaning                                                             axes
x_i      features  one-hot kind of symbol (4 operators, digit, closer) beside one-hot nesting depth   (T, 6 + MOST)
M_0                STRENGTH on the kinds, 0 on the depths: level 0 compares single symbols by kind
M_l                STRENGTH on the depths, 0 on the kinds: coarse levels compare summaries by depth
"""

import torch
from jaxtyping import Float
from torch import Tensor

from .attention import causal_mask, mix, score_tables
from .pyramid import causal_average

KINDS = ("[MIN", "[MAX", "[MED", "[SM", "digit", "]")
MOST = 5  # nesting depths, each with a feature
STRENGTH = 4.0


def readable_features(symbols: list[str]) -> Float[Tensor, "T features"]:
    """Kind and nesting depth of each symbol, float64; a bracket and a digit have the depth of the list that they are in."""
    x, depth = torch.zeros(len(symbols), len(KINDS) + MOST, dtype=torch.float64), 0
    for i, symbol in enumerate(symbols):
        depth += symbol.startswith("[")
        x[i, KINDS.index(symbol if symbol in KINDS else "digit")] = 1.0
        x[i, len(KINDS) + min(depth, MOST) - 1] = 1.0
        depth -= symbol == "]"
    return x


def readable_tables(symbols: list[str], levels: int) -> list[Tensor]:
    """[S^(0), ..., S^(L-1)] of the layer over causal averages, level l of (T_l, T_l)."""
    rows = [readable_features(symbols)]
    while len(rows) < levels:
        rows.append(causal_average(rows[-1]))
    kind, nesting = slice(len(KINDS)), slice(len(KINDS), None)
    chosen = [z[:, nesting if level else kind] for level, z in enumerate(rows)]
    scale = STRENGTH * torch.tensor([z.shape[1] for z in chosen]).sqrt()  # undoes the division by sqrt(d_k)
    return score_tables([s * z for s, z in zip(scale, chosen, strict=True)], chosen)


def readable_columns(symbols: list[str], levels: int, coarse: float) -> dict[str, Tensor]:
    """Columns level, i, j, score, attention of a table with all tables, and under level -1 the mixture.

    Levels above 0 share the weight ``coarse`` evenly; attention is NaN but for the mixture, where the mask holds.
    """
    tables = readable_tables(symbols, levels)
    alpha = torch.full((levels,), coarse / max(1, levels - 1), dtype=torch.float64)
    alpha[0] = 1.0 if levels == 1 else 1 - coarse  # one level takes all the weight
    S = mix(tables, alpha)
    parts = []
    for level, table in [*enumerate(tables), (-1, S)]:
        places = torch.arange(len(table))
        i, j = torch.meshgrid(places, places, indexing="ij")
        weights = torch.softmax(causal_mask(S), dim=-1) if level < 0 else torch.full_like(table, torch.nan)
        parts.append([torch.full_like(i, level), i, j, table, weights])
    columns = (torch.cat([each.flatten() for each in column]) for column in zip(*parts, strict=True))
    return dict(zip(("level", "i", "j", "score", "attention"), columns, strict=True))
