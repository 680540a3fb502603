"""Figures of the chapter say in words what they show."""

import numpy as np
import pandas as pd

from derived.papers.hierarchical_kernel.experiments.information import Averages, Budgets, Memory, SmallSamples
from derived.papers.hierarchical_kernel.experiments.layer import MultiplyAdds
from derived.papers.hierarchical_kernel.figures import clock, information, kernel, layer, leak, marks, trained
from derived.papers.hierarchical_kernel.model.readable import readable_columns

SYMBOLS = ["[MAX", "2", "9", "[MIN", "4", "7", "]", "0", "]"]


def marked(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(tier="ci", recorded=False)


def compared() -> pd.DataFrame:
    tables = []
    for kind in marks.NAMES:
        count = 3 if kind.startswith("hkt") else 1
        grid = pd.MultiIndex.from_product([range(5), range(2), range(count)], names=["replicate", "block", "level"])
        table = grid.to_frame(index=False).assign(kind=kind, part=0, alpha=1 / count)
        noise = 0.01 * np.sin(table["replicate"] * 3.0 + len(kind))
        tables.append(table.assign(accuracy=0.5 + noise, kurtosis=0.1 * table["level"] - 0.3 + noise))
    return marked(pd.concat(tables, ignore_index=True))


def drawn():
    def live(experiment, **changes):
        chosen = experiment.at("ci")
        return pd.concat(
            [chosen.run(c, seed=0, device="cpu", dtype=chosen.dtype).assign(**c) for c in chosen.conditions()]
        )

    yield layer.score_pyramid(pd.DataFrame(readable_columns(SYMBOLS, 3, 0.5)), SYMBOLS)
    seconds = pd.DataFrame({"T": 8, "impl": [*clock.IMPLS, "sdpa"] * 2, "round": np.repeat([0, 1], 5), "seconds": 1.0})
    yield clock.cost_bars(live(MultiplyAdds), marked(seconds))
    size = np.tril(np.ones((4, 4)))
    i, t = np.indices(size.shape)
    table = pd.DataFrame({"i": i.ravel(), "t": t.ravel(), "size": size.ravel()})
    yield leak.jacobians(pd.concat([table.assign(pooling=name) for name in ("block", "delayed")]))
    losses = [
        {"kind": k, "loss": 1.3 + 0.01 * r, "accuracy": 0.3, "chance": 1.4}
        for k in ("plain", "hkt", "hkt-block")
        for r in range(5)
    ]
    yield leak.leak(marked(pd.DataFrame(losses)))
    tiny = pd.DataFrame({"i": [0, 0, 1, 1], "t": [0, 1, 0, 1], "size": [1.0, 1e-16, 0.5, 1.0]})
    drawn = (
        leak.jacobians(pd.concat([tiny.assign(pooling=name) for name in ("block", "delayed")]))
        .axes[0]
        .images[0]
        .get_array()
    )
    assert np.isnan(np.ma.filled(drawn, np.nan)).tolist() == [[False, True], [False, False]]  # rounding is no colour
    yield kernel.eigenvalues(pd.DataFrame({"d_k": [1, 1], "head": [0, 0], "rank": [0, 1], "value": [-1.0, 2.0]}))
    energy = pd.DataFrame({"level": [0, 0, 1, 1], "symmetric": 1.0, "antisymmetric": 0.5})
    yield kernel.split_energy(energy)
    for draw, experiment in (
        (information.information, Budgets),
        (information.averages, Averages),
        (information.blindness, SmallSamples),
        (information.memory, Memory),
    ):
        yield draw(live(experiment))
    rules = {"range": "short", "rule": ["majority", "root", "depth 1"], "trees": 100, "right": [15, 32, 70]}
    yield trained.comparison(compared(), marked(pd.DataFrame(rules)), "short")
    yield trained.trained_levels(compared())
    yield layer.mutations(pd.DataFrame({"change": ["none", "no mask"], "effect": [0.0, 0.5]}))


def test_figures_say_in_words_what_they_show():
    for figure in drawn():
        assert len(figure.get_label()) > 50
        assert "nan" not in figure.get_label().replace(",", " ").split()
        assert "$" not in figure.get_label()


def test_the_comparison_names_the_paired_gain():
    rows = compared()
    rows.loc[rows["kind"] == "hkt", "accuracy"] = 0.07 + rows.loc[rows["kind"] == "plain", "accuracy"].iloc[0]
    rules = marked(pd.DataFrame({"range": "short", "rule": ["root"], "trees": 100, "right": [32]}))
    assert "over plain" in trained.comparison(rows, rules, "short").get_label()
