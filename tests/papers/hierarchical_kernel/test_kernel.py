"""The figures of the scores as a kernel (HKT-4, 5)."""

import pandas as pd

from derived.papers.hierarchical_kernel.figures.kernel import eigenvalues, split_energy


def test_eigenvalues_of_both_signs_are_counted(words_of):
    rows = pd.DataFrame({"d_k": 1, "head": 0, "rank": [0, 1, 2], "value": [-1.0, 2.0, 3.0]})
    assert "2 to 2 positive and 1 to 1 negative at width 1" in words_of(eigenvalues(rows))


def test_the_figure_of_both_parts_says_their_mean_by_level(words_of):
    rows = pd.DataFrame({"level": [0, 0, 1, 1], "symmetric": [1.0, 3.0, 1.0, 1.0], "antisymmetric": 0.5})
    figure = split_energy(rows)
    assert "level 0 2.00 and 0.50; level 1 1.00 and 0.50" in words_of(figure)
    assert "Both parts at every level, each at least 20 %" in [text.get_text() for text in figure.axes[0].texts]
