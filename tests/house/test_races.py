"""A race compares before it times: a contender that answers wrongly is refused, whoever it is, in every race."""

import importlib.util
import sys
from dataclasses import replace
from functools import partial, reduce, wraps
from pathlib import Path

import numpy as np
import pytest
import torch

from derived.lab.rng import stream

BENCH = Path(__file__).resolve().parents[2] / "bench"


def script(name: str):
    """A file of bench/, which is no package; the scripts import ``harness`` and helpers from beside them."""
    if str(BENCH) not in sys.path:
        sys.path.append(str(BENCH))
    if name != "harness":
        script("harness")
    known = "harness" if name == "harness" else f"bench_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, BENCH / f"{name}.py")
        sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


harness = script("harness")


def flipped(found, inputs):
    """One spin is wrong."""
    found = found.clone()
    found[-1, -1] *= -1
    return found


def larger(found, inputs, by=1e-3):
    """The last number is a little too large."""
    found = found.clone()
    found.view(-1)[-1] += by * found.abs().max()
    return found


def other_course(found, inputs):
    """One curve's q is off in the seventh digit at the last block."""
    q = found[0].copy()
    q[0, -1] *= 1 + 1e-7
    return (q, *found[1:])


def louder(found, inputs):
    """Every Jacobian norm is a tenth too large."""
    return 1.1 * found


def drifted(found, inputs):
    """Overlaps a fifth of the way nearer to one."""
    return found + 0.2 * (1 - found)


def strayed(found, inputs):
    """One path among many is a little off."""
    found = found.clone()
    found[..., 1] += 0.01
    return found


def misread(found, inputs):
    """Every odd value is said to be the even one below it."""
    values = found[56:].reshape(5, 2).sum(axis=1)
    return np.concatenate([found[:56], np.stack([values, 0 * values], axis=1).ravel()])


def half_forgotten(found, inputs):
    """Half of the operators of one kind are lost."""
    return np.concatenate([[found[0] // 2], found[1:]])


def recovered_from_the_verifier(found, inputs):
    """After a rejection the token is drawn from the verifier's whole law."""
    tokens, kept = found
    rows = inputs[2] if bool((inputs[2] >= 0).all()) and float(inputs[2].max()) <= 1 else inputs[2].softmax(dim=-1)
    last = torch.multinomial(rows[torch.arange(len(kept)), kept], 1, generator=stream(0, "mutant"))
    return tokens.scatter(1, kept[:, None], last), kept


def one_more_kept(found, inputs):
    """A rejected draft is kept where the next token would stand."""
    tokens, kept = found
    cut = kept < inputs[1].shape[1]
    draft = inputs[1].gather(1, kept.clamp(max=inputs[1].shape[1] - 1)[:, None])
    return torch.where(cut[:, None], tokens.scatter(1, kept[:, None], draft), tokens), kept


def scribbled(found, inputs, sample=True):
    """Every fourth token of a sampled text is anybody's; greedy texts are right."""
    found = found.clone()
    if sample:
        found[:, ::4] = torch.randint(1000, found[:, ::4].shape, generator=stream(0, "mutant"))
    return found


def mistaken_once(found, inputs, sample=True):
    """The last token of a greedy text is wrong; sampled texts are right."""
    return found if sample else torch.cat([found[:, :-1], (found[:, -1:] + 1) % 1000], dim=1)


def first_larger(found, inputs):
    """The last number of the outputs is too large by a tenth of the largest; the gradients are right."""
    return [larger(found[0], inputs, by=0.1), *found[1:]]


def one_code_dearer(found, inputs):
    """One number of one code is a little too large."""
    found = found.copy()
    found[-1, 0] += 1e-9
    return found


def one_world_moved(found, inputs):
    """The last world stands in a cell of its own, or with the first where it did already."""
    found = np.array(found)
    found[-1] = 0 if (found[:-1] != found[-1]).all() else found.max() + 1
    return found


DAMAGES = {
    "in_place_ttt": {"forward": [first_larger], "recurrence": [larger]},
    "sinkhorn": {"derivative": [larger]},
    "ols_attention": {"least squares": [larger]},
    "signal_propagation": {"curves": [other_course], "Jacobian": [louder]},
    "homogenized": {"chain": [drifted], "widths": [drifted]},
    "hierarchical_kernel": {"tables": [larger], "features": [larger], "ListOps": [misread, half_forgotten]},
    "task_ecologies": {
        "best partition": [one_world_moved],
        "training": [larger],
        "gradients": [larger],
        "excess, loss": [one_code_dearer],
    },
    "cactus": {
        "Cactus,": [recovered_from_the_verifier, one_more_kept],
        "exact,": [recovered_from_the_verifier, one_more_kept],
        "texts": [scribbled, mistaken_once],
    },
    "geometric_tax": {
        "Lorenz": [larger, strayed],
        "RDM": [larger],
        "Procrustes": [larger],
        "feature split": [larger],
        "cosine steps": [larger],
    },
}


def damaged(run, damage):
    """The contender with its result damaged."""
    if isinstance(run, partial):

        def wrong(inputs, **options):
            return damage(run(inputs, **options), inputs, **options)

        wrong.__doc__ = run.__doc__
        return wrong

    @wraps(run)
    def wrong(inputs, **options):
        return damage(run(inputs, **options), inputs, **options)

    return wrong


@pytest.fixture
def timed(monkeypatch):
    """What was timed; nothing really is."""
    calls = []

    def noted(contenders, rounds):
        if "ours" in contenders:  # and not the machine's copy and product
            calls.append(list(contenders))
        return {name: [1.0] * rounds for name in contenders}

    monkeypatch.setattr(harness, "interleaved", noted)
    monkeypatch.setattr(harness, "peak_mb", lambda *_: 1.0)
    monkeypatch.delenv("AUTHORS", raising=False)
    return calls


def refused(race, timed) -> bool:
    timed.clear()
    try:
        harness.contest(race, rounds=1, threads=1)
    except SystemExit:
        return not timed
    return False


@pytest.mark.filterwarnings("ignore:flex_attention called without", "ignore:Triton is not supported")
@pytest.mark.parametrize("name", DAMAGES)
def test_a_wrong_contender_is_refused_before_anything_is_timed(name, timed, monkeypatch):
    bench = script(name)
    if name == "hierarchical_kernel":  # compiling takes long and changes nothing of what is compared
        monkeypatch.setattr(bench, "compiled", lambda: bench.flex_attention)
    if name == "geometric_tax":
        step = partial(bench.rk4_coordinates, bench.field, dt=bench.SPAN / bench.STEPS)
        steps = lambda *state: reduce(lambda each, _: step(each), range(bench.FUSED), state)  # noqa: E731
        monkeypatch.setattr(bench, "some_steps", lambda: steps)
    missed = []
    for race in bench.races(True):
        timed.clear()
        rows = harness.contest(race, rounds=1, threads=1)
        assert len(rows) == len(race.peers), race.name
        assert timed == [["ours", *range(len(race.peers))]]
        damages = [each for part, kinds in DAMAGES[name].items() if part in race.name for each in kinds]
        assert damages, f"no mutant for {race.name}"
        for damage in damages:
            if not refused(replace(race, ours=damaged(race.ours, damage), peers=race.peers[:1]), timed):
                missed.append((race.name, "ours", damage.__name__))
            for peer in race.peers:
                if not refused(replace(race, peers=(replace(peer, run=damaged(peer.run, damage)),)), timed):
                    missed.append((race.name, harness.name_of(peer.run), damage.__name__))
    assert not missed


def test_a_wrong_contender_is_refused_where_the_peers_are_not_in_the_lock(timed):
    """Our own result stands in for the peer's: right it is timed, with one number off it is refused."""
    for race in script("stochastic_approximation").races(True):
        twin = replace(race.peers[0], run=race.ours)
        assert not refused(replace(race, peers=(twin,)), timed)
        assert timed == [["ours", 0]]
        assert refused(replace(race, peers=(replace(twin, run=damaged(race.ours, larger)),)), timed), race.name


def test_a_sampler_that_never_rejects_is_not_raced(timed, monkeypatch):
    bench = script("cactus")
    monkeypatch.setattr(bench, "RULE", bench.Cactus(1.0))
    race = next(iter(bench.races(True)))
    assert refused(race, timed)
    with pytest.raises(SystemExit, match="0% of the blocks are cut"):
        harness.contest(race, rounds=1, threads=1)


def build(num: int) -> int:
    return num


def ours(inputs: int) -> int:
    """ours"""
    return inputs


def fast(inputs: int) -> int:
    """the fast one"""
    return inputs


def slow(inputs: int) -> int:
    """the slow one"""
    return inputs


def author(inputs: int) -> int:
    """the author's"""
    return inputs


def equal(inputs: int, ours: int, peer: int) -> float:
    return harness.within(abs(ours - peer), 0.0)


SECONDS = {
    "ours": [1.0, 2.0, 1.0, 1.0, 1.0, 1.0],
    0: [9.0, 9.0, 9.0, 9.0, 9.0, 9.0],
    1: [0.4, 0.9, 0.5, 0.6, 0.4, 0.5],
    2: [0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
}


def toy(**facts) -> "harness.Race":
    peers = [harness.Peer(run=slow, gap=equal), harness.Peer(run=fast, gap=equal, **facts)]
    peers.append(harness.Peer(run=author, gap=equal, role="author"))
    return harness.Race(name="toy", build=build, sizes={"num": 3}, ours=ours, peers=tuple(peers))


def test_a_race_is_headed_by_its_strongest_peer_and_the_ratio_is_one_statistic_with_its_interval(monkeypatch):
    monkeypatch.setattr(harness, "interleaved", lambda *_: SECONDS)
    monkeypatch.setattr(harness, "peak_mb", lambda build, sizes, run, threads: 2.0 if run is ours else 7.0)
    first, second, last = harness.contest(toy(), rounds=6, threads=1)
    assert (first.peer, first.headline, second.headline) == ("the fast one", True, False)
    assert (last.peer, last.role, last.headline) == ("the author's", "author", False)  # though it is the fastest
    assert first.ratio == pytest.approx(0.475)  # the median of 0.4, 0.45, 0.5, 0.6, 0.4, 0.5, round by round
    assert (first.ratio_low, first.ratio_high) == pytest.approx((0.4, 0.6))
    assert (first.ours_ms, first.peer_ms, first.verdict) == (1000.0, 500.0, "missed")
    assert (second.verdict, first.ours_peak_mb, first.peer_peak_mb) == ("met", 2.0, 7.0)
    part = next(row for row in harness.contest(toy(every=10), rounds=6, threads=1) if "fast" in row.peer)
    assert part.ratio == pytest.approx(4.75)
    assert "(1/10 of the work, time x 10)" in part.peer
    asked = next(row for row in harness.contest(toy(every=10, memory=4.0), rounds=6, threads=1) if "fast" in row.peer)
    assert (part.verdict, asked.verdict) == ("met", "missed")  # 7 MB are not four times 2 MB


def test_what_is_reported_is_no_race_and_heads_none(monkeypatch):
    monkeypatch.setattr(harness, "interleaved", lambda *_: SECONDS)
    monkeypatch.setattr(harness, "peak_mb", lambda *_: 1.0)
    first, *_ = harness.contest(toy(why="No checks."), rounds=6, threads=1)
    assert (first.peer, first.headline, first.verdict) == ("the slow one", True, "met")
    found = next(row for row in harness.contest(toy(why="No checks."), rounds=6, threads=1) if "fast" in row.peer)
    assert (found.headline, found.verdict, found.ratio) == (False, "reported", pytest.approx(0.475))
    assert (found.role, found.why, first.why) == ("reported", "No checks.", "")
    alone = replace(toy(), peers=(harness.Peer(run=slow, gap=equal, why="No checks."),))
    assert [row.headline for row in harness.contest(alone, rounds=6, threads=1)] == [False]


def test_the_limit_is_the_least_time_of_the_machine_over_ours(monkeypatch):
    """We take 2 s; the best copy takes 2 s, and the best product 4 s."""
    rates, seconds = {"copy": [3.0, 2.0], "product": [4.0, 5.0]}, SECONDS | {"ours": [2.0] * 6}
    monkeypatch.setattr(harness, "interleaved", lambda runs, _: rates if "copy" in runs else seconds)
    work = 2**27, 2 * 1024**3  # half of what the copy reads and writes, and the product's operations
    assert harness.least_seconds(*work, torch.float64) == pytest.approx(4.0)
    assert harness.least_seconds(work[0], 0, torch.float32) == pytest.approx(1.0)
    rows = harness.contest(replace(toy(), work=lambda _: work), rounds=6, threads=1, memory=False)
    assert [row.limit for row in rows] == pytest.approx([2.0] * 3)
    assert rows[0].ours_peak_mb == 0.0
    assert "a share of ours: 200.0% (toy)." in harness.limits(rows)
    assert harness.limits([replace(row, limit=None) for row in rows]) == ""


def test_the_interval_of_a_median_holds_it_as_often_as_it_says():
    g, num = np.random.default_rng(0), 4_000
    for n, missed in ((6, 2 / 2**6), (11, 2 * 12 / 2**11), (21, 0.0266)):  # 2 P(Bin(n, 1/2) < k)
        low, high = np.array([harness.median_interval(row) for row in g.exponential(size=(num, n))]).T
        share = float(np.mean((low > np.log(2)) | (high < np.log(2))))
        assert abs(share - missed) < 4.5 * (missed / num) ** 0.5
        narrower = np.sort(g.exponential(size=(num, n)))[:, [n // 4 + 1, -n // 4 - 2 + 1]]
        assert np.mean((narrower[:, 0] > np.log(2)) | (narrower[:, 1] < np.log(2))) > 0.05
    assert harness.median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)


@pytest.mark.parametrize(("low", "high", "found"), [(1.0, 2.0, "met"), (0.5, 0.99, "missed"), (0.9, 1.1, "undecided")])
def test_a_target_is_met_by_the_whole_interval(low, high, found):
    assert harness.verdict(low, high, 1.0) == found


def test_what_is_not_a_number_is_refused():
    with pytest.raises(SystemExit, match="differ by nan"):
        harness.within(float("nan"))


def test_the_memory_of_a_contender_is_that_of_a_process_of_its_own():
    assert harness.peak_mb(megabytes, {"num": 64}, twice, 1) == pytest.approx(64, abs=8)


def megabytes(num: int) -> torch.Tensor:
    return torch.ones(num, 2**18)


def twice(inputs: torch.Tensor) -> float:
    """adds one array as large as its inputs"""
    return float((2 * inputs).sum())


def test_an_authors_code_that_is_not_there_is_said(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("AUTHORS", str(tmp_path))
    assert harness.authors_code("theirs") is None
    assert "no theirs under $AUTHORS" in capsys.readouterr().out
    (tmp_path / "theirs").mkdir()
    assert harness.authors_code("theirs") == tmp_path / "theirs"


def test_a_short_call_is_timed_by_the_mean_of_many(monkeypatch):
    clock, made = [0.0], []
    monkeypatch.setattr(harness.time, "perf_counter", lambda: clock[0])

    def lasting(name, seconds):
        def call():
            made.append(name)
            clock[0] += seconds

        return call

    found = harness.interleaved({"short": lasting("short", 0.003), "long": lasting("long", 0.5)}, rounds=5)
    assert {name: pytest.approx([each] * 5) for name, each in (("short", 0.003), ("long", 0.5))} == found
    warm = 1 + 1 + 5  # a call for warmth, one for its length, and one that does not count in each turn
    assert {name: made.count(name) - warm for name in found} == {"short": 5 * 4, "long": 5}


def test_a_turn_begins_with_a_call_that_does_not_count(monkeypatch):
    clock, last = [0.0], [""]
    monkeypatch.setattr(harness.time, "perf_counter", lambda: clock[0])

    def disturbed(name):
        def call():
            clock[0] += 0.5 if last[0] == name else 2.0
            last[0] = name

        return call

    found = harness.interleaved({name: disturbed(name) for name in ("ours", "peer")}, rounds=4)
    assert found == {"ours": [0.5] * 4, "peer": [0.5] * 4}
