"""Topic memory: excursions are counted as they should be, figure and explorer say what the rows say."""

import numpy as np
import pandas as pd
import torch

from derived.lab.rng import stream
from derived.papers.stochastic_approximation import HeavyTailedRenewal
from derived.papers.stochastic_approximation.explorer import explorer
from derived.papers.stochastic_approximation.memory import CLAIMS, Line, PhaseDiagram, SamplePaths, excursions

FACTS = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float64}
EXPERIMENTS = (Line, PhaseDiagram, SamplePaths)


def test_an_excursion_is_seen_in_its_window_alone():
    x = torch.full((21, 2), 0.5)  # times 2..22
    x[9, 1] = 0.81  # time 11
    assert excursions(x, (2, 6, 11), 2).tolist() == [[False, False], [False, True], [False, True]]
    assert not excursions(x, (4,), 2).any()  # the window [4, 8] ends before
    x[9, 1], x[10, 0] = 0.5, 0.1  # time 12
    assert excursions(x, (6, 5), 2).tolist() == [[True, False], [False, False]]  # 12 is the end of [6, 12]


def test_windows_of_the_line_are_those_of_the_loop():
    """Slow twin of one condition; and no shuffled stream is far off."""
    small = Line(windows=(32, 128), replicas=40, block=20)
    table = small.run({"beta": 1.5, "data": "as drawn"}, **FACTS)
    y = torch.cat([HeavyTailedRenewal(1.5).draw(256, 20, stream(0, "trend", block)).y for block in range(2)], dim=1)
    for side, alpha in (("below", 2 / 3 - 0.1), ("above", 2 / 3 + 0.1)):
        x, far = torch.full((40,), 0.5, dtype=torch.float64), []
        for n, value in enumerate(y, start=1):
            x = x + n**-alpha * (value - x)
            far.append((x - 0.5).abs() > 0.3)
        early, late = (torch.stack(far[N - 1 : 2 * N]).any(dim=0).double() for N in (32, 128))
        found = table[table["side"] == side]
        assert (found["early"].to_numpy() == early.numpy()).all()
        assert (found["trend"].to_numpy() == ((late - early) * (1 if side == "below" else -1)).numpy()).all()
    shuffled = Line(windows=(256, 1024), replicas=40, block=40).run({"beta": 1.5, "data": "shuffled"}, **FACTS)
    assert shuffled["late"].mean() < 0.05


def test_the_phase_diagram_counts_the_paths_of_the_loop():
    """Slow twin of one condition: paths that leave 0.2 .. 0.8 between N and 2 N."""
    small = PhaseDiagram(windows=(8, 32), alphas=(0.51, 1.0), replicas=40)
    table = small.run({"beta": 1.2}, **FACTS)
    y = HeavyTailedRenewal(1.2).draw(64, 40, stream(0, "phase")).y
    for alpha in small.alphas:
        x, far = torch.full((40,), 0.5, dtype=torch.float64), []
        for n, value in enumerate(y, start=1):
            x = x + n**-alpha * (value - x)
            far.append((x - 0.5).abs() > 0.3)
        shares = [float(torch.stack(far[N - 1 : 2 * N]).any(dim=0).double().mean()) for N in small.windows]
        assert table[table["alpha"] == alpha].sort_values("N")["share"].tolist() == shares
    assert (table["replicas"] == 40).all()


def test_the_trend_needs_both_sides_and_the_shuffled_streams_fail():
    """Known trends of 0.2 below and 0.05 above the line: the lesser is judged, and streams without trend fail."""
    noise = np.random.default_rng(0).normal(scale=0.01, size=400)
    cells = [
        {"data": data, "beta": beta, "replicate": r, "side": side, "trend": trend * (data == "as drawn") + noise[r]}
        for data in ("as drawn", "shuffled")
        for beta in (1.3, 1.5)
        for r in range(200)
        for side, trend in (("below", 0.2), ("above", 0.05))
    ]
    (claim,) = CLAIMS
    table = pd.DataFrame(cells)
    assert abs(claim.measure(table).value - 0.05) < 0.005
    assert claim.judge(claim.measure(table))[0] == "holds"
    assert claim.judge(claim.control(table))[0] == "fails"


def grid(**axes) -> pd.DataFrame:
    table = pd.MultiIndex.from_product(axes.values(), names=axes).to_frame(index=False)
    return table.assign(tier="ci", recorded=False)


def test_the_explorer_has_a_frame_for_every_setting_and_stays_small():
    axes = {"beta": (1.2, 1.5), "alpha": (0.55, 0.9)}
    diagram = grid(**axes, N=(64, 128))
    diagram["share"] = (diagram["alpha"] * diagram["beta"] <= 1) * 0.5 + (diagram["N"] == 128) * 0.25
    figure = explorer(diagram, grid(**axes, n=(1, 2, 3)).assign(x=0.5, y=1.0))
    assert {frame.name for frame in figure.frames} == {"1.2|0.55", "1.2|0.9", "1.5|0.55", "1.5|0.9"}
    assert [list(trace) for trace in figure.data[2].z] == [[0.75, 0.75], [0.25, 0.25]]  # the largest N, by alpha
    assert "0.75" in figure.layout.meta["alt"]
    assert "0.25" in figure.layout.meta["alt"]
    cross = {frame.name: frame.data[2] for frame in figure.frames}["1.2|0.9"]
    assert (cross.x[0], cross.y[0]) == (1.2, 0.9)
    assert len(figure.to_json()) < 1_000_000


def test_a_missing_number_decides_nothing(rows, undecided_without):
    undecided_without(rows)
