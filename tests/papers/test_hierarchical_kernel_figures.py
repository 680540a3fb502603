"""Figures of the chapter say in words what they show; the explorer has a frame for every setting."""

import numpy as np
import pandas as pd
import pytest

from derived.papers.hierarchical_kernel import example, explorer, figures, mechanism
from derived.papers.hierarchical_kernel import experiments as ex
from derived.papers.hierarchical_kernel.levels import Averages, Blindness, Budgets, Memory

SYMBOLS = ["[MAX", "2", "9", "[MIN", "4", "7", "]", "0", "]"]


def marked(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(tier="ci", recorded=False)


def compared() -> pd.DataFrame:
    tables = []
    for kind in figures.NAMES:
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

    yield figures.score_pyramid(example.readable_rows(SYMBOLS, 3, 0.5), SYMBOLS)
    seconds = pd.DataFrame(
        {"T": 8, "impl": [*figures.IMPLS, "sdpa"] * 2, "round": np.repeat([0, 1], 5), "seconds": 1.0}
    )
    yield figures.cost_bars(live(ex.MultiplyAdds), marked(seconds))
    size = np.tril(np.ones((4, 4)))
    i, t = np.indices(size.shape)
    table = pd.DataFrame({"i": i.ravel(), "t": t.ravel(), "size": size.ravel()})
    yield figures.jacobians(pd.concat([table.assign(pooling=name) for name in ("block", "delayed")]))
    leak = [
        {"kind": k, "loss": 1.3 + 0.01 * r, "accuracy": 0.3, "chance": 1.4}
        for k in ("plain", "hkt", "hkt-block")
        for r in range(5)
    ]
    yield figures.leak(marked(pd.DataFrame(leak)))
    tiny = pd.DataFrame({"i": [0, 0, 1, 1], "t": [0, 1, 0, 1], "size": [1.0, 1e-16, 0.5, 1.0]})
    drawn = (
        figures.jacobians(pd.concat([tiny.assign(pooling=name) for name in ("block", "delayed")]))
        .axes[0]
        .images[0]
        .get_array()
    )
    assert np.isnan(np.ma.filled(drawn, np.nan)).tolist() == [[False, True], [False, False]]  # rounding is no colour
    yield figures.eigenvalues(pd.DataFrame({"d_k": [1, 1], "head": [0, 0], "rank": [0, 1], "value": [-1.0, 2.0]}))
    energy = pd.DataFrame({"level": [0, 0, 1, 1], "symmetric": 1.0, "antisymmetric": 0.5})
    yield figures.split_energy(energy)
    for draw, experiment in (
        (figures.information, Budgets),
        (figures.averages, Averages),
        (figures.blindness, Blindness),
        (figures.memory, Memory),
    ):
        yield draw(live(experiment))
    rules = {"range": "short", "rule": ["majority", "root", "depth 1"], "trees": 100, "right": [15, 32, 70]}
    yield figures.comparison(compared(), marked(pd.DataFrame(rules)), "short")
    yield figures.trained_levels(compared())
    yield figures.mutations(pd.DataFrame({"change": ["none", "no mask"], "effect": [0.0, 0.5]}))


def test_figures_say_in_words_what_they_show():
    for figure in drawn():
        assert len(figure.get_label()) > 50
        assert "nan" not in figure.get_label().replace(",", " ").split()
        assert "$" not in figure.get_label()


def test_eigenvalues_of_both_signs_are_counted():
    rows = pd.DataFrame({"d_k": 1, "head": 0, "rank": [0, 1, 2], "value": [-1.0, 2.0, 3.0]})
    assert "2 to 2 positive and 1 to 1 negative at width 1" in figures.eigenvalues(rows).get_label()


def test_the_comparison_names_the_paired_gain():
    rows = compared()
    rows.loc[rows["kind"] == "hkt", "accuracy"] = 0.07 + rows.loc[rows["kind"] == "plain", "accuracy"].iloc[0]
    rules = marked(pd.DataFrame({"range": "short", "rule": ["root"], "trees": 100, "right": [32]}))
    assert "over plain" in figures.comparison(rows, rules, "short").get_label()


def test_the_readable_layer_is_the_mixture_of_its_tables():
    rows = example.readable_rows(SYMBOLS, 2, 0.25)
    tables = [
        rows[rows["level"] == level].pivot(index="i", columns="j", values="score").to_numpy() for level in (0, 1, -1)
    ]
    spread = tables[1].repeat(2, axis=0).repeat(2, axis=1)[: len(SYMBOLS), : len(SYMBOLS)]
    assert np.allclose(tables[2], 0.75 * tables[0] + 0.25 * spread)
    attention = rows[rows["level"] == -1].pivot(index="i", columns="j", values="attention").to_numpy()
    assert np.allclose(attention.sum(axis=1), 1)
    assert (np.triu(attention, 1) == 0).all()


def test_readable_features_know_kind_and_depth():
    x = example.readable_features(SYMBOLS)
    assert (x.sum(dim=1) == 2).all()
    assert x[0].argmax() == 1  # [MAX
    depths = x[:, len(example.KINDS) :].argmax(dim=1) + 1
    assert depths.tolist() == [1, 1, 1, 2, 2, 2, 2, 1, 1]
    assert mechanism.num_rows(len(SYMBOLS), 1) == 5


def test_brackets_pair_openers_with_closers():
    x, y = explorer.bracket_lines(SYMBOLS)
    lists = [[v for v in x[i : i + 4]] for i in range(0, len(x), 5)]
    assert [3, 3, 6, 6] in lists
    assert [0, 0, 8, 8] in lists
    assert y[4] is None


@pytest.mark.parametrize("symbols", [SYMBOLS])
def test_the_explorer_has_a_frame_for_every_setting_and_stays_small(symbols):
    settings = [(count, weight) for count in (1, 2) for weight in (0.0, 0.5)]
    tables = [example.readable_rows(symbols, count, weight) for count, weight in settings]
    rows = [
        table[table["level"] == -1].assign(levels=count, weight=weight)
        for table, (count, weight) in zip(tables, settings, strict=True)
    ]
    figure = explorer.score_explorer(pd.concat(rows, ignore_index=True), symbols)
    names = {f"{count}|{weight:g}|{query}" for count, weight in settings for query in (2, 5, 8)}
    assert {frame.name for frame in figure.frames} == names
    assert len(figure.to_json()) < 1_500_000
    assert len(figure.layout.sliders) == 3
