"""The ledger of training: which starts find the whitening map, and when the loss cannot see it (OLS-9, OLS-10).

A replicate is one data set; it counts if all its runs succeed.
"""

from derived.lab import measure
from derived.lab.claims import at_least, at_most, refuted, statistic, unseen

from ..experiments.training import Reachability, Stalled, Starts, Structure, TrainedEndPoint

NEAR = 1e-3  # of the scalar weight to its limit
STALLED = 0.1  # |L| s at the saddle
PREDICTED = 2e-3  # of the scalar weight to the predicted end point
FOUND, MISSED, FITTED = 1e-2, 0.1, 1e-4  # structure gaps; loss above least squares, relative
RUNS = "share of data sets all of whose runs end with"
SHARE = "share of data sets"
SHAPE = ("p", "m", "replicate")  # each shape draws its own data
STRUCTURE = r"$\|L^\top\Sigma L-I\|_F/\sqrt p"
DESCENT = "optimizer == 'gd' and read_out == 'recomputed'"
REACHED = f"abs(l - inverse_root) < {NEAR}"
UNTRAINED = f"abs(l0 - inverse_root) < {NEAR}"

CLAIMS = (
    statistic(
        "OLS-9",
        r"On $y=2x+\varepsilon$ with $n=500$ tokens and with $P$ computed from the data, training by Adam from "
        r"$L_0\in\{0.1,0.5,1.5\}$ brings the scalar weight $L$ to $1/s$ within 1000 epochs.",
        Reachability,
        measure.share(REACHED, "optimizer == 'adam' and l0 > 0 and read_out != 'trained'"),
        rf"{RUNS} $|L-1/s|<{NEAR:g}$ (Adam at rate $10^{{-2}}$, $L_0>0$, $P$ frozen or recomputed)",
        at_least(0.9),
        control=measure.share(UNTRAINED, "optimizer == 'adam' and l0 > 0 and read_out != 'trained'"),
        source="digest",
        where="experiment, as retold; optimiser and starts are ours",
        plain="From small positive starts training by Adam brings the toy layer to its theoretical weight within 1000 epochs.",
        paper_value="yes",
        unit=SHARE,
    ),
    statistic(
        "OLS-10.a",
        r"From $L_0=-0.5$, with $P$ frozen at its theoretical value, training of the scalar layer stalls at the saddle "
        "$L=0$, by descent and by Adam, and does not leave it.",
        Stalled,
        measure.share(f"abs(l) * s < {STALLED}"),
        rf"{RUNS} $|L|<{STALLED:g}/s$",
        at_least(0.9),
        control=measure.share(f"abs(l0) * s < {STALLED}"),
        unit=SHARE,
        horizon="10,000 epochs, ten times those of the retold experiment",
    ),
    statistic(
        "OLS-10.b",
        r"From $L_0=-0.5$, with $P$ recomputed from $L$, training of the scalar layer ends at $-1/s$: the sign of $L$ is "
        "not identified.",
        Reachability,
        measure.share(f"abs(l + inverse_root) < {NEAR}", "l0 < 0 and read_out == 'recomputed'"),
        rf"{RUNS} $|L+1/s|<{NEAR:g}$",
        at_least(0.9),
        control=measure.share(f"abs(l0 + inverse_root) < {NEAR}", "l0 < 0 and read_out == 'recomputed'"),
        unit=SHARE,
    ),
    statistic(
        "OLS-10.c",
        r"With $L$ and $P$ both trained from a start with $L_0P_0\hat\beta>0$ or $L_0^2>3P_0^2$, gradient descent in small "
        r"steps on the scalar layer ends where $L^3P=\hat\beta/s^2$ meets $L^2-3P^2=L_0^2-3P_0^2$.",
        TrainedEndPoint,
        measure.share(f"abs(l - predicted) < {PREDICTED}", "arrives"),
        rf"{RUNS} $L$ less than ${PREDICTED:g}$ from its predicted value",
        at_least(0.9),
        control=measure.share(f"abs(l0 - predicted) < {PREDICTED}", "arrives"),
        unit=SHARE,
        horizon="8,000 epochs",
    ),
    statistic(
        "OLS-10.d",
        r"With $L$ and $P$ both trained, the fit is found and the weight is not: each of five starts comes to a "
        r"least-squares fit whose $L$ is not $1/s$.",
        TrainedEndPoint,
        measure.share(f"abs(l - inverse_root) >= {NEAR} and excess < {FITTED}", "arrives"),
        rf"{RUNS} $|L-1/s|\ge{NEAR:g}$ and a loss above least squares below ${FITTED:g}$ of that at $L=0$",
        at_least(0.9),
        control=measure.share(f"abs(l0 - inverse_root) >= {NEAR} and untrained_excess < {FITTED}", "arrives"),
        where=r"$1/s$ needs a start with $L_0^2-3P_0^2=\frac1{s^2}-3s^2\hat\beta^2$",
        unit=SHARE,
    ),
    statistic(
        "OLS-10.e",
        r"If $\operatorname{rank}\hat B=p$, at least eight in ten trainings of the matrix $L$ by Adam at the rate "
        r"$10^{-2}$, without noise, find the structure $LL^\top=\Sigma^{-1}$.",
        Structure,
        measure.share(f"structure_gap < {FOUND}", "rank == p", unit=SHAPE),
        rf"share of runs (three shapes, each run with data of its own) that end with {STRUCTURE}<{FOUND:g}$",
        at_least(0.8),
        control=measure.share(f"untrained_gap < {FOUND}", "rank == p", unit=SHAPE),
        unit="share of runs",
    ),
    statistic(
        "OLS-10.f",
        r"If $\operatorname{rank}\hat B<p$, at least eight in ten trainings of the matrix $L$ by Adam at the rate "
        r"$10^{-2}$, without noise, fit the data and miss the structure $LL^\top=\Sigma^{-1}$.",
        Structure,
        measure.share(f"relative_loss < {FITTED} and structure_gap > {MISSED}", "rank < p", unit=SHAPE),
        rf"share of runs (three shapes, each run with data of its own) that end with a relative loss below ${FITTED:g}$ "
        rf"and {STRUCTURE}>{MISSED:g}$",
        at_least(0.8),
        control=measure.share(f"untrained_loss < {FITTED} and untrained_gap > {MISSED}", "rank < p", unit=SHAPE),
        where="the retold experiment has $p=1$ and cannot see it",
        unit="share of runs",
    ),
    statistic(
        "OLS-10.g",
        r"With $L$ and $P$ both trained from a start with $L_0P_0\hat\beta<0$ and $L_0^2\le3P_0^2$, gradient descent in small "
        r"steps stalls at the saddle $L=0$.",
        TrainedEndPoint,
        measure.share(f"abs(l) < {STALLED} * inverse_root", "not arrives"),
        rf"{RUNS} $|L|<{STALLED:g}/s$",
        at_least(0.9),
        control=measure.share(f"abs(l0) < {STALLED} * inverse_root", "not arrives"),
        where="the case that the condition of OLS-10.c leaves out",
        unit=SHARE,
        horizon="8,000 epochs",
    ),
    refuted(
        "OLS-10.h",
        r"Gradient descent with a step below the edge of stability ends where the gradient flow ends, with $P$ recomputed "
        r"from every $L_0>0$ at $1/s$.",
        Reachability,
        measure.share(f"~({REACHED})", f"{DESCENT} and l0 > 1"),
        rf"a share of runs (rate $5\cdot10^{{-3}}$, $L_0=1.5$) without $|L-1/s|<{NEAR:g}$ after 1000 epochs",
        at_most(0.0),
        where="a tempting step; these runs are those of OLS-9 with descent in place of Adam",
        unit="share of runs",
    ),
    statistic(
        "OLS-10.i",
        r"Gradient descent with a step of at most half the edge of stability and $P$ recomputed comes to $1/s$ from "
        r"$L_0=0.1$ and $0.5$ within 1000 epochs.",
        Reachability,
        measure.share(REACHED, f"{DESCENT} and 0 < l0 < 1"),
        rf"{RUNS} $|L-1/s|<{NEAR:g}$ (rate $5\cdot10^{{-3}}$, $L_0=0.1$ and $0.5$, 1000 epochs)",
        at_least(0.9),
        control=measure.share(UNTRAINED, f"{DESCENT} and 0 < l0 < 1"),
        where="the page proves it for every $L_0$ in $(0,1/s]$, at the price of a time like $L_0^{-2}$",
        amends="OLS-10.h",
        unit=SHARE,
    ),
    refuted(
        "OLS-10.j",
        r"With $P$ frozen, training of the scalar layer by Adam stalls at the saddle $L=0$ from every $L_0<0$, as the flow "
        "does.",
        Starts,
        measure.share(REACHED, "optimizer == 'adam' and read_out == 'frozen' and l0 == -0.2"),
        rf"a share of runs (rate $10^{{-2}}$, $L_0=-0.2$) with $|L-1/s|<{NEAR:g}$ after 1000 epochs",
        at_most(0.0),
        where="a tempting step: momentum carries a near start over the saddle",
        unit="share of runs",
    ),
    refuted(
        "OLS-10.k",
        r"With $P$ recomputed, gradient descent with a step below the edge of stability ends at $-1/s$ from every $L_0<0$, as "
        "the flow does.",
        Starts,
        measure.share(f"~(abs(l + inverse_root) < {NEAR})", f"{DESCENT} and l0 == -1.4"),
        rf"a share of runs (rate $5\cdot10^{{-3}}$, $L_0=-1.4$) without $|L+1/s|<{NEAR:g}$ after 1000 epochs",
        at_most(0.0),
        where="OLS-10.h from the other side",
        unit="share of runs",
    ),
)
UNSEEN = unseen(
    "OLS-18",
    "The published curves of the paper's experiment come out again, number by number.",
    "neither curves nor tables of the paper could be seen; OLS-9 reruns its experiment as retold",
    source="paper",
    where="not visible",
    plain="The curves of the paper's own experiment come out again.",
    paper_value="not visible",
)
