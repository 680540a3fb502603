"""The ledger of the scores as a kernel: when they are positive semidefinite, and their two parts."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.claims import on_page, unseen
from derived.lab.plot import BLUE, DASHED, MUTED, ORANGE, beside, largest, panel_label, points, shades

PSD = (
    on_page("HKT-4.a"),
    on_page("HKT-4.c"),
    on_page("HKT-4.e"),
    on_page("HKT-4.f", where="a tempting reading"),
    on_page("HKT-4.g", amends="HKT-4.f"),
    unseen(
        "HKT-4.h",
        "The hierarchical scores are a psd kernel under the paper's condition on the symmetrised bilinear forms.",
        "only the abstract was visible; HKT-4.a is a condition of this form for our construction",
        plain="The mixed scores are a positive semidefinite kernel, if the symmetrised forms of the levels meet a"
        " condition.",
        source="paper",
        where="abstract (Prop. 3.1)",
        paper_value="not visible",
    ),
)

PARTS = (
    on_page("HKT-5.c", where="a reading of Props 3.5, 3.6 for causal layers"),
    on_page("HKT-5.d", amends="HKT-5.c"),
    unseen(
        "HKT-5.g",
        "$L$ levels have $L$ independent pairs of parts, which control reciprocal and directional attention, as printed.",
        "only the abstract was visible; HKT-5.c and d are what holds for our construction. That one table has one such pair"
        " is true of every square matrix",
        plain="Scores have one symmetric and one antisymmetric part at each level, which steer mutual and directed attention.",
        source="paper",
        where="abstract (Props 3.5, 3.6)",
        paper_value="not visible",
    ),
)


# Figures: Eigenvalues of random heads, and the two parts of the score tables, of random layers and of trained
# encoders.

MODELS = {"sapiens-heavy": "antibodies, heavy", "sapiens-light": "antibodies, light", "rxnmapper": "reactions"}


def eigenvalues(rows: pd.DataFrame) -> Figure:
    """Eigenvalues of sym(M) of random heads; rows: head, d_k, rank, value."""
    figure, ax = plt.subplots(figsize=(6.6, 2.9))
    widths, words = sorted(rows["d_k"].unique()), []
    for place, (d_k, color) in enumerate(zip(widths, shades(len(widths)), strict=True)):
        part = rows[rows["d_k"] == d_k]
        spread = place + 0.7 * (part["rank"] / max(1, part["rank"].max()) - 0.5)
        ax.plot(spread, part["value"], ".", color=color, markersize=3)
        counts = [(sign * part["value"] > 1e-9).groupby(part["head"]).sum() for sign in (1, -1)]
        positive, negative = (f"{int(count.min())} to {int(count.max())}" for count in counts)
        words.append(f"{positive} positive and {negative} negative at width {d_k}")
    ax.axhline(0, **DASHED)
    ax.set(xticks=range(len(widths)), xticklabels=[f"$d_k={each}$" for each in widths])
    ax.set_ylabel(r"eigenvalues of $\operatorname{sym}(M)$")
    signs = np.sign(rows["value"].where(rows["value"].abs() > 1e-9, 0)).groupby([rows["d_k"], rows["head"]]).sum()
    panel_label(ax, "Every head: as many negative as positive" if (signs == 0).all() else "Negative beside positive")
    figure.set_label(f"Eigenvalues of random heads, in two clouds around zero: {'; '.join(words)}.")
    return figure


def split_energy(rows: pd.DataFrame) -> Figure:
    """Squared norm by level and part, mean over instances; rows: level, symmetric, antisymmetric (squared norms)."""
    figure, ax = plt.subplots(figsize=(6.0, 2.6))
    means = rows.groupby("level")[["symmetric", "antisymmetric"]].mean()
    ax.barh(means.index, means["symmetric"], color=BLUE, height=0.6)
    ax.barh(means.index, means["antisymmetric"], left=means["symmetric"], color=ORANGE, height=0.6)
    top = means.iloc[0]
    beside(ax, 0, -0.55, "symmetric", BLUE, (2, 0))
    beside(ax, top["symmetric"], -0.55, "antisymmetric", ORANGE, (2, 0))
    ax.set(yticks=means.index, yticklabels=[f"level {level}" for level in means.index], ylim=(len(means) - 0.5, -0.8))
    ax.set_xlabel(r"mean of $\Vert\alpha_lU_lS^{(l)}U_l^\top\Vert_F^2$, its two parts")
    least = (means.min(axis="columns") / means.sum(axis="columns")).min()
    panel_label(ax, f"Both parts at every level, each at least {100 * least:.0f} %")
    words = "; ".join(f"level {k} {r['symmetric']:.2f} and {r['antisymmetric']:.2f}" for k, r in means.iterrows())
    figure.set_label(f"Stacked bars of squared norm by level, symmetric and antisymmetric part: {words}.")
    return figure


def trained_parts(rows: pd.DataFrame) -> Figure:
    """Symmetric share of the scores by layer, a panel a model, heads trained and drawn anew; rows of ``ScoreParts``."""
    rows, words = largest(rows), []
    names = [*rows["model"].unique()]
    figure, axes = plt.subplots(1, len(names), figsize=(2.5 * len(names), 2.7), sharey=True, squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        for heads, color, marker in (("drawn", MUTED, "s"), ("trained", BLUE, "o")):
            drawn = points(
                ax, rows[(rows["model"] == name) & (rows["heads"] == heads)], "layer", "symmetric", color, marker
            )
            least, most = drawn["value"].min(), drawn["value"].max()
            words.append(f"{MODELS.get(name, name)}, {heads}: {least:.2f} to {most:.2f}")
            if ax is axes[0][0]:
                label = "trained" if heads == "trained" else "drawn anew"
                beside(ax, 1, drawn.loc[drawn["layer"] == 1, "value"].iloc[0], label, color, (0, 11), ha="left")
        ax.axhline(0.5, **DASHED)
        last = rows.loc[rows["model"] == name, "layer"].max()
        ax.set(xlabel="layer", xlim=(0.5, last + 0.5), xticks=range(1, last + 1, -(-last // 6)))
        trained = rows[(rows["model"] == name) & (rows["heads"] == "trained")]
        panel_label(ax, f"{MODELS.get(name, name)}:\n{100 * trained['symmetric'].mean():.0f} % symmetric as trained")
    axes[0][0].set_ylabel("symmetric share of the scores")
    figure.set_label(f"Symmetric share of the squared norm of the scores over layers. {'; '.join(words)}.")
    return figure
