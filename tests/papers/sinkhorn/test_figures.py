"""Every figure draws what its experiment gives, names its axes, and says in words what there is to see."""

import dataclasses
import itertools

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd

from derived.lab.experiment import run_condition
from derived.papers.sinkhorn import approximation, explorer, flows, gradients, plans, rates, real, relations, trained

matplotlib.use("agg")


def small(experiment, **sizes) -> pd.DataFrame:
    """Live rows of an experiment, smaller even than for the other tests where ``sizes`` says so."""
    held = dataclasses.replace(experiment.at("tiny"), **sizes)
    table = pd.concat([run_condition(held, one, 0, "cpu") for one in held.conditions()], ignore_index=True)
    return table.assign(tier="ci", recorded=False)


def test_matrices_show_their_column_means(tells):
    cells = [("Sinkhorn", 0, 0, 1.5), ("Sinkhorn", 0, 1, 0.5), ("Sinkhorn", 1, 0, 0.5), ("Sinkhorn", 1, 1, 1.5)]
    rows = pd.DataFrame(cells, columns=["matrix", "i", "j", "value"])
    tilted = rows.assign(matrix="softmax", value=[1.8, 0.2, 1.0, 1.0])
    figure = plans.three_matrices(pd.concat([rows, tilted]))
    tells(figure, "Sinkhorn: 1.00 to 1.00", "softmax: 0.60 to 1.40")


def test_rates(tells):
    tells(rates.contraction(small(rates.Contraction, spreads=rates.SHOWN)), "local rate", "over-relaxed")
    rows = small(rates.RandomScores, replicates=2, sizes=(8, 16), spreads=(0.3, 0.7))
    tells(rates.random_scores(rows), "for s = 0.7 at n = 16")


def test_what_couplings_cannot(tells):
    causal = small(relations.Causal, instances=1, iterations=50)
    figure = relations.cannot(small(relations.Sinks, sizes=(8,)), causal, small(relations.Jumps))
    tells(figure, "every coupling is 0.875 away", "differ by 1.000 at temperature 0,")


def test_constructions(tells):
    tells(approximation.block_plans(small(approximation.BlockPlans)), "2 approximations")
    tells(approximation.errors(small(approximation.Blocks, instances=1, n=4)), "below the bound", "order kept")


def test_gradients_and_flows(tells):
    rows = small(gradients.Truncated, instances=2, halves=(1, 5, 21))
    tells(gradients.truncated(rows), "unrolled at spread 1", "detached at spread 2")
    tells(flows.particles(small(flows.Particles, n=4, steps=3)), "softmax from", "Sinkhorn from")
    tells(flows.heat_limit(small(flows.HeatLimit, widths=(0.2, 0.4), num=128)), "softmax 0.97", "Sinkhorn 0.49")


def test_trained(tells):
    tells(trained.learned_relations(small(trained.LearnedCouplings)), "at 16 tokens: sinkhorn, order kept")
    arms = small(trained.Arms, steps=1)
    tells(trained.arms(arms), "1 half-step: accuracy", "5 half-steps")
    tells(trained.compute(arms), "softmax, longer", "operations", "5 half-steps")


def test_the_explorer_has_a_frame_for_every_temperature():
    rows = small(plans.PlanGrid, points=5, iterations=3000)
    figure = explorer.explorer(rows)
    assert len(figure.frames) == len(figure.layout.sliders[0].steps) == 5
    assert "5 sorted points at 5 temperatures" in figure.layout.meta["alt"]
    cold, hot = (frame.data[1].x for frame in (figure.frames[0], figure.frames[-1]))
    assert cold[0] < hot[0] <= 1.0001  # cost over that of independence
    assert cold[1] == hot[1] <= cold[0] + 1e-3  # the least cost is the same for all
    assert cold[2] < hot[2] <= 1.0001  # entropy
    assert cold[3] == hot[3] == 0  # a count has no length
    counts = [int(frame.data[1].text[3]) for frame in (figure.frames[0], figure.frames[-1])]
    assert counts[0] > counts[1]  # iterations


def test_trained_weights(tells):
    shares = (("rows", 0.9), ("rows", 0.8), ("coupling", 1.0), ("coupling", 0.9))
    facts = {"stage": "maps", "mechanism": 0, "temperature": 1.0}
    cells = [facts | {"way": way, "right": right} for way, right in shares]
    columns = [{"stage": "columns", "layer": layer, "trained": 0.5, "untrained": 0.1} for layer in (0, 1)]
    mapped = pd.DataFrame([*cells, *columns]).assign(tier="ci", recorded=False)
    figure = real.weights(mapped, mapped[mapped["stage"] == "columns"].assign(trained=0.7))
    errors = ("reactions: 0.10 untrained, 0.50 trained", "sentences: 0.10 untrained, 0.70 trained")
    tells(figure, "rows: 0.1500", "coupling, temperature 1: 0.0500", *errors)


def test_what_is_learned_is_told_by_means_at_the_longest_texts():
    """Columns: 6 and 4 % of softmax's mass are in wrong ones; rows: 0.30 against 0.28 at 64 tokens, more at 8."""
    cells = itertools.product(("comonotone", "crossed", "shuffled"), ("softmax", "sinkhorn"), (8, 64), range(4))
    rows = pd.DataFrame(cells, columns=["target", "normaliser", "n", "model"])
    wrong = rows["target"].map({"comonotone": 0.06, "crossed": 0.04, "shuffled": 0.9})
    rows["missed"] = wrong.where(rows["normaliser"] == "softmax", 0.0) * (1 + (rows["n"] == 8)) + 1e-9 * rows["model"]
    rows["ratio"] = 0.28 + 0.02 * (rows["normaliser"] == "softmax") + 0.5 * (rows["n"] == 8) + 1e-9 * rows["model"]
    figure = trained.learned_relations(rows.assign(stage="final", recorded=False, tier="ci"))
    labels = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert "Columns: softmax is off by 6.0 %, Sinkhorn by 0.0 %" in labels
    assert "Rows: the two differ by 0.02 at most at 64 tokens" in labels


def test_a_mask_leaves_the_mean_off_the_diagonal():
    causal = pd.DataFrame(itertools.product((2, 4), (1, 10, 100), (0, 1)), columns=["n", "iteration", "replicate"])
    causal["off_diagonal"] = (1 + causal["replicate"]) / causal["iteration"]
    ax = plt.figure().add_subplot()
    assert "to 1.5e-02 for n = 2, 1.5e-02 for n = 4" in relations._causal(ax, causal)
    plt.close("all")
