"""The explorer: one frame for every setting of its sliders, and a map that is the table's."""

import pandas as pd

from derived.papers.stochastic_approximation.explorer import explorer

BETAS, ALPHAS = (1.2, 1.5), (0.55, 0.9)


def rows(**axes) -> pd.DataFrame:
    table = pd.MultiIndex.from_product(axes.values(), names=axes).to_frame(index=False)
    return table.assign(tier="ci", recorded=False)


def test_the_explorer_has_a_frame_for_every_setting_and_stays_small():
    diagram = rows(beta=BETAS, alpha=ALPHAS, N=(64, 128))
    diagram["share"] = (diagram["alpha"] * diagram["beta"] <= 1) * 0.5 + (diagram["N"] == 128) * 0.25
    paths = rows(beta=BETAS, alpha=ALPHAS, n=(1, 2, 3)).assign(x=0.5, y=1.0)
    figure = explorer(diagram, paths)
    assert {frame.name for frame in figure.frames} == {"1.2|0.55", "1.2|0.9", "1.5|0.55", "1.5|0.9"}
    assert [list(trace) for trace in figure.data[2].z] == [[0.75, 0.75], [0.25, 0.25]]  # the largest N, by alpha
    assert "0.75" in figure.layout.meta["alt"]
    assert "0.25" in figure.layout.meta["alt"]
    cross = {frame.name: frame.data[2] for frame in figure.frames}["1.2|0.9"]
    assert (cross.x[0], cross.y[0]) == (1.2, 0.9)
    assert len(figure.to_json()) < 1_000_000
