"""Every figure draws what its experiment gives, names its axes, and says in words what there is to see."""

import dataclasses
import itertools

import matplotlib
import pandas as pd
import torch

from derived.lab.experiment import run_condition
from derived.papers.sinkhorn import approximation, plans, rates, relations, trained

matplotlib.use("agg")


def small(experiment, **sizes) -> pd.DataFrame:
    """Live rows of an experiment, smaller even than for the other tests where ``sizes`` says so."""
    held = dataclasses.replace(experiment.at("tiny"), **sizes)
    table = pd.concat([run_condition(held, one, 0, "cpu") for one in held.conditions()], ignore_index=True)
    return table.assign(tier="ci", recorded=False)


def test_rates(tells):
    tells(rates.contraction(small(rates.Contraction, spreads=rates.SHOWN)), "local rate", "over-relaxed")


def test_what_couplings_cannot(tells):
    causal = small(relations.Causal, instances=1, iterations=50)
    figure = relations.cannot(causal)
    tells(figure, "every coupling is 0.875 away", "and above: 1.000 at 0, 0.0")
    sink, _, jump = figure.axes
    assert sink.lines[0].get_ydata()[0] == sink.lines[1].get_ydata()[0] == 7 / 8  # even softmax is a coupling
    assert [line.get_ydata()[-1] > line.get_ydata()[0] for line in jump.lines] == [False, True, True, True]


def test_the_explorer_has_a_frame_for_every_temperature():
    figure = plans.explorer(n=5, points=5, iterations=3000)
    assert len(figure.frames) == len(figure.layout.sliders[0].steps) == 5
    assert "5 sorted points at 5 temperatures" in figure.layout.meta["alt"]
    cold, hot = (frame.data[1].x for frame in (figure.frames[0], figure.frames[-1]))
    assert cold[0] < hot[0] <= 1.0001  # cost over that of independence
    assert cold[1] == hot[1] <= cold[0] + 1e-3  # the least cost is the same for all
    assert cold[2] < hot[2] <= 1.0001  # entropy
    assert cold[3] == hot[3] == 0  # a count has no length
    counts = [int(frame.data[1].text[3]) for frame in (figure.frames[0], figure.frames[-1])]
    assert counts[0] > counts[1]  # iterations


def test_the_construction_comes_nearer_with_every_step_of_the_slider():
    figure = approximation.rebuilt(n=8, cells=(1, 4, 16))
    frames = [frame.data[1].x for frame in figure.frames]
    assert [len(frame.data) for frame in figure.frames] == [2, 2, 2]
    assert frames[0][0] > frames[1][0] > frames[2][0]
    assert all(distance <= bound for distance, bound in frames)


def learned() -> pd.DataFrame:
    """Softmax has 6 and 4 % of its mass in wrong columns; by rows 0.30 against 0.28 at 64 tokens, more at 8."""
    cells = itertools.product(("comonotone", "crossed", "shuffled"), ("softmax", "sinkhorn"), (8, 64), range(4))
    rows = pd.DataFrame(cells, columns=["target", "normaliser", "n", "model"])
    wrong = rows["target"].map({"comonotone": 0.06, "crossed": 0.04, "shuffled": 0.9})
    rows["missed"] = wrong.where(rows["normaliser"] == "softmax", 0.0) * (1 + (rows["n"] == 8)) + 1e-9 * rows["model"]
    rows["ratio"] = 0.28 + 0.02 * (rows["normaliser"] == "softmax") + 0.5 * (rows["n"] == 8) + 1e-9 * rows["model"]
    return rows.assign(stage="final", recorded=False, tier="ci")


def test_what_is_learned_is_drawn_at_the_longest_texts(tells):
    tells(trained.learned_relations(learned()), "softmax, order kept, missed: 0.060", "sinkhorn, crossed, ratio: 0.280")


def test_matrices_show_their_column_means(tells):
    even, tilted = torch.tensor([[1.5, 0.5], [0.5, 1.5]]), torch.tensor([[1.8, 0.2], [1.0, 1.0]])
    figure = plans.three_matrices({"softmax": tilted, "Sinkhorn": even})
    tells(figure, "Sinkhorn: 1.00 to 1.00", "softmax: 0.60 to 1.40")


def test_the_table_says_by_how_much_sinkhorn_is_better():
    facts = {"stage": "final", "chosen": True, "task": "matching", "placebo": False}
    arms = pd.DataFrame(
        [
            facts | {"num_half_steps": k, "steps": s, "model": m, "accuracy": v + m / 1000}
            for k, s, v in ((1, 600, 0.80), (3, 600, 0.83), (5, 600, 0.84), (1, 1800, 0.82))
            for m in range(4)
        ]
    )
    fixed = pd.DataFrame(itertools.product(("comonotone", "crossed"), ("softmax", "sinkhorn"), (20.0, 40.0)))
    fixed.columns = ["target", "normaliser", "beta"]
    maps = [
        {"stage": "maps", "temperature": 1.0, "mechanism": m, "way": w, "right": 1 - v}
        for w, v in (("coupling", 0.004), ("rows", 0.011), ("greedy", 0.003))
        for m in range(3)
    ]
    even = arms[arms["steps"] == 600]
    found = trained.table(learned(), fixed.assign(ratio=fixed["beta"] / 100), arms, even, pd.DataFrame(maps))
    better = found["better by (99.9 %)"]
    assert found.loc[("crossed", "distance by rows")].tolist()[:2] == ["softmax 0.300", "0.280"]
    assert better["crossed", "distance by rows"].startswith("0.020 (")
    assert better["crossed", "% in wrong columns"].startswith("4.0 (")
    assert better["matching, equal steps", "% right, 3 half-steps"].startswith("3.0 (")
    assert better["matching, softmax longer", "% right, 5 half-steps"].startswith("2.0 (")
    assert found.loc[("crossed, untrained", "distance by rows")].tolist() == ["softmax 0.200", "0.200", ""]
    assert [each[:4] for each in better["atom maps"]] == ["0.70", "-0.1"]
