"""The ledger of training: which starts find the whitening map, and when the loss cannot see it (OLS-9, OLS-10).

A replicate is one data set; it counts if all its runs succeed.
"""

from derived.lab import measure
from derived.lab.claims import at_least, statistic

from ..experiments.training import Reachability, Structure, TrainedEndPoint

NEAR = 1e-3  # of the scalar weight to its limit
STALLED = 0.1  # |L| s at the saddle
PREDICTED = 2e-3  # of the scalar weight to the predicted end point
FOUND, MISSED, FITTED = 1e-2, 0.1, 1e-4  # structure gaps; relative loss
RUNS = "share of replicates all of whose runs end with"
SHARE = "share of replicates"
SHAPE = ("p", "m", "replicate")  # each shape draws its own data
STRUCTURE = r"$\|L^\top\Sigma L-I\|_F/\sqrt p"

CLAIMS = (
    statistic(
        "OLS-9",
        r"On $y=2x+\varepsilon$ with $n=500$ tokens and with $P$ computed from the data, training brings the scalar "
        r"weight $L$ to $1/s$ within 1000 epochs.",
        Reachability,
        measure.share(f"abs(l - inverse_root) < {NEAR}", "optimizer == 'adam' and l0 > 0 and read_out != 'trained'"),
        rf"{RUNS} $|L-1/s|<{NEAR:g}$ (Adam at rate $10^{{-2}}$, $L_0>0$, $P$ frozen or recomputed)",
        at_least(0.9),
        source="digest",
        where="experiment, as retold",
        paper_value="yes",
        unit=SHARE,
    ),
    statistic(
        "OLS-10.a",
        r"From $L_0<0$, with $P$ frozen at its theoretical value, training of the scalar layer stalls at the saddle "
        "$L=0$.",
        Reachability,
        measure.share(f"abs(l) * s < {STALLED}", "l0 < 0 and read_out == 'frozen'"),
        rf"{RUNS} $|L|<{STALLED:g}/s$",
        at_least(0.9),
        unit=SHARE,
    ),
    statistic(
        "OLS-10.b",
        r"From $L_0<0$, with $P$ recomputed from $L$, training of the scalar layer ends at $-1/s$: the sign of $L$ is "
        "not identified.",
        Reachability,
        measure.share(f"abs(l + inverse_root) < {NEAR}", "l0 < 0 and read_out == 'recomputed'"),
        rf"{RUNS} $|L+1/s|<{NEAR:g}$",
        at_least(0.9),
        unit=SHARE,
    ),
    statistic(
        "OLS-10.c",
        r"With $L$ and $P$ both trained, gradient descent on the scalar layer ends where $L^3P=\hat\beta/s^2$ meets "
        r"$L^2-3P^2=L_0^2-3P_0^2$.",
        TrainedEndPoint,
        measure.share(f"abs(l - predicted) < {PREDICTED}"),
        rf"{RUNS} $L$ less than ${PREDICTED:g}$ from its predicted value",
        at_least(0.9),
        unit=SHARE,
    ),
    statistic(
        "OLS-10.d",
        r"With $L$ and $P$ both trained, $L$ does not come to $1/s$, though the fit is the least-squares fit.",
        TrainedEndPoint,
        measure.share(f"abs(l - inverse_root) >= {NEAR}"),
        rf"{RUNS} $|L-1/s|\ge{NEAR:g}$",
        at_least(0.9),
        unit=SHARE,
    ),
    statistic(
        "OLS-10.e",
        r"If $\operatorname{rank}\hat B=p$, zero loss forces $LL^\top=\Sigma^{-1}$, and training the matrix $L$ finds it.",
        Structure,
        measure.share(f"structure_gap < {FOUND}", "rank == p", unit=SHAPE),
        rf"{RUNS} {STRUCTURE}<{FOUND:g}$",
        at_least(0.8),
        unit=SHARE,
    ),
    statistic(
        "OLS-10.f",
        r"If $\operatorname{rank}\hat B<p$, training the matrix $L$ fits the data and misses the structure "
        r"$LL^\top=\Sigma^{-1}$.",
        Structure,
        measure.share(f"relative_loss < {FITTED} and structure_gap > {MISSED}", "rank < p", unit=SHAPE),
        rf"{RUNS} a relative loss below ${FITTED:g}$ and {STRUCTURE}>{MISSED:g}$",
        at_least(0.8),
        where="the retold experiment has $p=1$ and cannot see it",
        unit=SHARE,
    ),
)
