"""Every figure names its axes, has no title, and says in its alt text what the rows say."""

import matplotlib
import numpy as np
import pandas as pd

from derived.papers.stochastic_approximation import attention, components, continual, memory, rates, real, streams
from derived.papers.stochastic_approximation.attention import Readout, SelfFed
from derived.papers.stochastic_approximation.components import Mixtures, Worlds
from derived.papers.stochastic_approximation.continual import Average, Tracking
from derived.papers.stochastic_approximation.memory import LongRange, PhaseDiagram, Renewal, SamplePaths
from derived.papers.stochastic_approximation.rates import Central, Exponents

matplotlib.use("agg")
EXPERIMENTS = (Readout, SelfFed, Mixtures, Worlds, Average, Tracking, LongRange, PhaseDiagram, Renewal, SamplePaths)
EXPERIMENTS += (Central, Exponents)


def test_fan(rows, tells):
    ends = rows[Mixtures]
    ends = ends[(ends["n"] == ends["n"].max()) & (ends["feed"] == "exchanged")]
    means = ends.groupby("component")["x"].mean()
    tells(components.fan(rows[Mixtures]), "mean field is 1.79", f"{means[0]:.2f} and {means[1]:.2f}")


def test_worlds_apart(rows, tells):
    last = rows[Worlds].query("c == 4 and n == n.max()").assign(total=lambda one: one["x1"] + one["x2"])
    both = last.loc[last["learner"] == "both", "total"].median()
    tells(components.worlds_apart(rows[Worlds]), "world 1 alone 6.", f"both {both:.3g}")


def test_real(tells):
    table = pd.DataFrame(
        {"data": ["as it is", "resampled", "resampled", "shuffled", "shuffled"], "replicate": [0, 0, 1, 0, 1]}
    )
    table = table.assign(series="Nile", exponent=[-0.2, -0.3, -0.1, -0.55, -0.45], tier="ci", recorded=False)
    names = pd.DataFrame(
        {"language": ["fi_FI", "sv_SE"], "other": ["sv_SE", "fi_FI"], "kl": [0.5, 0.4], "rate": [0.5, 0.1]}
    )
    told = real.streams(table, names.assign(names="given", tier="ci", recorded=False))
    tells(told, "Nile -0.20, shuffled -0.50", "2 pairs of languages: 0.25 to 1.00")


def test_rates(rows, tells):
    spread = rows[Central].groupby("component")["z"].std()
    tells(rates.rate_curves(rows[Exponents], rows[Central]), "lambda 0.3", f"{spread[0]:.2f} and {spread[1]:.2f}")


def test_memory(rows, tells):
    diagram = rows[PhaseDiagram]
    top = diagram[diagram["N"] == diagram["N"].max()]
    share = top.loc[top["alpha"] * top["beta"] > 1, "share"].mean()
    tells(memory.phase(diagram, rows[SamplePaths]), "alpha 0.55", f"{share:.2f} above it")
    error = rows[Renewal].groupby("n")["rmse"].mean()
    slope = np.polyfit(np.log(error.index), np.log(error), 1)[0]
    tells(memory.typical_and_root(rows[Renewal]), f"root mean square: slope {slope:.2f}")
    tells(memory.long_range(rows[LongRange]), "H 0.8, alpha 0.7: slope -0.1", "predicted -0.140")


def test_attention(rows, tells):
    limit = rows[Readout].groupby("component")["limit"].first()
    tells(attention.readouts(rows[Readout]), f"limit {limit[0]:.2f}", f"limit {limit[1]:.2f}")
    walk = pd.DataFrame({"feed": "uniform", "replicate": 0, "n": [1, 10], "read": [1.0, 0.6]})
    end = rows[SelfFed].loc[rows[SelfFed]["feed"] == "uniform", "x"]
    tells(attention.self_fed(rows[SelfFed], walk), f"uniform scores: mean {end.mean():.2f}")


def test_continual(rows, tells):
    square = rows[Tracking].groupby(["a", "epsilon"])["square"].mean()
    tells(continual.trade_off(rows[Tracking], rows[Average]), f"{square.iloc[0]:.3f}", "1/epsilon = 100")


def test_streams(tells):
    grid = pd.MultiIndex.from_product([("many", "one"), (1e-3, 1e-2), range(3)], names=("arm", "rate", "model"))
    table = grid.to_frame(index=False).assign(tier="cpu", recorded=True)
    table["chosen"] = table["rate"] == 1e-2
    far = {"excess": 0.25, "own": 0.004, "other": 0.83}
    table = table.assign(
        validation=table["rate"] + 0.5, **{k: np.where(table["arm"] == "one", v, 0.005) for k, v in far.items()}
    )
    tells(streams.coins(table), "trained on one, on the other: 0.8300", "trained on many, on fresh streams: 0.0050")
    grid = pd.MultiIndex.from_product([(8, 16), range(5), range(8)], names=("context", "model", "place"))
    table = grid.to_frame(index=False).assign(tier="cpu", recorded=True, chosen=True)
    table["bayes"] = 1 / (1 + table["place"])
    table = table.assign(excess=0.003 * table["context"], blind=np.log(3) - table["bayes"])
    tells(streams.contexts(table), "context 16: excess 0.0480", "from 1.00 to 0.12", "stays at 1.10")
