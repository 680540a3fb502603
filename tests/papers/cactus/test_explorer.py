"""The explorer: one frame for every setting of its sliders."""

from derived.papers.cactus.figures.explorer import explorer


def test_the_explorer_has_a_frame_for_every_setting_and_stays_small(grid):
    axes = {"delta": (0.0, 0.1, 1.0), "temperature": (0.5, 1.0), "noise": (0.0, 2.0)}
    rows = grid(**axes, token=range(1, 5)).assign(p=0.25, q=0.25, emitted=0.25)
    rows = rows.assign(acceptance=0.9, exact=0.8, tv=0.1, kl=0.2, draft_kl=0.3)
    figure = explorer(rows)
    assert {frame.name for frame in figure.frames} == {
        "|".join(f"{value:g}" for value in each) for each in grid(**axes)[[*axes]].to_numpy()
    }
    assert len(figure.to_json()) < 1_500_000
    assert "3 × 2 × 2" in figure.layout.meta["alt"]
