"""The figures of the scores as a kernel (HKT-4, 5)."""

import pandas as pd

from derived.papers.hierarchical_kernel.kernel import eigenvalues, split_energy, trained_parts


def test_eigenvalues_of_both_signs_are_counted(words_of):
    rows = pd.DataFrame({"d_k": 1, "head": 0, "rank": [0, 1, 2], "value": [-1.0, 2.0, 3.0]})
    assert "2 to 2 positive and 1 to 1 negative at width 1" in words_of(eigenvalues(rows))


def test_the_figure_of_both_parts_says_their_mean_by_level(words_of):
    rows = pd.DataFrame({"level": [0, 0, 1, 1], "symmetric": [1.0, 3.0, 1.0, 1.0], "antisymmetric": 0.5})
    figure = split_energy(rows)
    assert "level 0 2.00 and 0.50; level 1 1.00 and 0.50" in words_of(figure)
    assert "Both parts at every level, each at least 20 %" in [text.get_text() for text in figure.axes[0].texts]


def test_the_figure_of_trained_parts_says_its_ends_by_model(words_of):
    shares = {("sapiens-heavy", "trained"): 0.7, ("sapiens-heavy", "drawn"): 0.5, ("own", "trained"): 0.6}
    rows = pd.DataFrame(
        {"model": model, "heads": heads, "layer": layer, "replicate": r, "symmetric": share + 0.02 * layer}
        for (model, heads), share in (*shares.items(), (("own", "drawn"), 0.4))
        for layer in (1, 2)
        for r in range(4)
    ).assign(recorded=True, tier="cpu")
    figure = trained_parts(rows)
    assert "antibodies, heavy, trained: 0.72 to 0.74" in words_of(figure)
    assert "own, drawn: 0.42 to 0.44" in words_of(figure)
    lines = [ax.texts[-1].get_text() for ax in figure.axes]
    assert lines == ["antibodies, heavy:\n73 % symmetric as trained", "own:\n63 % symmetric as trained"]
