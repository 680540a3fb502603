"""Topic rates: Birkhoff's bound, the local rate, over-relaxation, random scores, and the clock."""

from derived.papers.sinkhorn.rates import Contraction

EXPERIMENTS = (Contraction,)


def test_a_push_dies_at_the_predicted_rate(rows):
    table = rows[Contraction].query("iteration == 0")
    plain, best = (table[table["omega"] == name] for name in ("plain", "best"))
    assert (plain["rate"] / plain["predicted"] - 1).abs().max() < 0.01
    assert (best["rate"] - best["predicted"]).abs().max() < 0.12  # at the best omega the error carries a factor T
    moved = rows[Contraction].query("omega == 'plain' and ratio == ratio")
    assert (moved["ratio"] <= moved["kappa2"]).all()


def test_distances_fall_to_rounding(rows):
    table = rows[Contraction].query("omega == 'plain' and spread < 1")
    last = table[table["iteration"] == table["iteration"].max()]
    assert (last["distance"] < 1e-12).all()
    assert (last["column_error"] < 1e-13).all()


def test_over_relaxation_is_faster_where_the_plain_way_is_slow(rows):
    table = rows[Contraction].query("spread == 2.0 and iteration == 0").pivot(index="instance", columns="omega")
    assert (table["rate", "best"] < table["rate", "plain"]).all()
