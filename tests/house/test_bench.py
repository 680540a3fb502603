"""A race compares before it times, and refuses a wrong result."""

import importlib
import json
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench"))

import race as racing  # noqa: E402

SLUGS = sorted(path.stem for path in (ROOT / "bench").glob("*.py") if path.stem != "race")


def race_of(slug: str) -> racing.Race:
    """The race of bench/<slug>.py, under a name of its own: a chapter's slug may be another module's name."""
    known = f"bench_{slug}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, ROOT / f"bench/{slug}.py")
        sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known].RACE


@pytest.fixture
def runnable(monkeypatch):
    """The race of a slug with a peer that runs here: numba's loops as plain Python, ours in place of other peers."""

    def found(slug: str) -> racing.Race:
        each = race_of(slug)
        if not each.needs or find_spec(each.needs):
            return each
        if each.needs != "numba":
            return replace(each, peer=each.ours)
        compiler = SimpleNamespace(njit=lambda function=None, **_: function or (lambda inner: inner))
        monkeypatch.setitem(sys.modules, "numba", compiler)
        compiled = sys.modules[f"bench_{slug}"].compiled
        monkeypatch.setattr(sys.modules[f"bench_{slug}"], "compiled", compiled.__wrapped__)  # nothing is cached
        return each

    return found


def larger(found, by=1e-3):
    """The last number is a little too large."""
    found = found.clone()
    found.view(-1)[-1] += by * found.abs().max()
    return found


def last_from_the_verifier(found):
    """The token after the kept drafts is another one."""
    tokens, kept = found
    return tokens.scatter(1, kept[:, None], (tokens.gather(1, kept[:, None]) + 1) % 300), kept


def one_more_kept(found):
    """One more draft counts as kept."""
    return found[0], found[1] + 1


def other_course(found):
    """One curve's q is off in the seventh digit at the last block."""
    q = found[0].copy()
    q[0, -1] *= 1 + 1e-7
    return (q, *found[1:])


def one_world_alone(found):
    """The first of the cells with two worlds is split."""
    place = next(i for i, cell in enumerate(found) if cell & (cell - 1))
    lowest = found[place] & -found[place]
    return [*found[:place], lowest, found[place] ^ lowest, *found[place + 1 :]]


def one_world_lost(found):
    """A cell is left out."""
    return found[:-1]


DAMAGES = {
    "cactus": [last_from_the_verifier, one_more_kept],
    "geometric_tax": [lambda found: found + 1e-8],
    "hierarchical_kernel": [larger],
    "homogenized": [lambda found: found + 0.2 * (1 - found)],
    "in_place_ttt": [
        lambda found: [larger(found[0], 0.01), *found[1:]],
        lambda found: [*found[:-1], larger(found[-1])],
    ],
    "ols_attention": [larger],
    "signal_propagation": [other_course],
    "sinkhorn": [larger, lambda found: found.roll(1, dims=-1)],
    "stochastic_approximation": [larger],
    "task_ecologies": [one_world_alone, one_world_lost],
}


@pytest.mark.parametrize("slug", SLUGS)
def test_a_race_runs_at_toy_sizes(slug, runnable):
    row = racing.run(runnable(slug), 1, True, turns=2, seconds=0.001)
    assert (row["threads"], row["rounds"], row["name"]) == (1, 2, f"{race_of(slug).name} (run at small sizes)")
    assert 0 < row["ratio_low"] <= row["ratio"] <= row["ratio_high"]
    assert min(row["ours_ms"], row["peer_ms"]) > 0


@pytest.mark.parametrize("slug", SLUGS)
def test_a_wrong_result_is_refused_before_anything_is_timed(slug, runnable, monkeypatch):
    monkeypatch.setattr(racing, "Timer", lambda *_, **__: pytest.fail("timed"))
    each = runnable(slug)
    for damage in DAMAGES[slug]:
        for who in ("ours", "peer"):
            call = getattr(each, who)
            with pytest.raises(SystemExit):
                racing.run(replace(each, **{who: lambda inputs, call=call: damage(call(inputs))}), 1, True)  # noqa: B023


def test_times_are_taken_in_turns_and_the_ratio_is_that_of_pairs(monkeypatch):
    """The machine slows down by half from one turn to the next; the ratio of a turn does not see it."""
    calls = []

    class Timer:
        def __init__(self, _, globals, num_threads):
            self.run, self.threads = globals["run"], num_threads

        def blocked_autorange(self, min_run_time):
            calls.append(self.run())
            return SimpleNamespace(median={"ours": 0.001, "peer": 0.003}[calls[-1]] * 1.5 ** ((len(calls) - 1) // 2))

    monkeypatch.setattr(racing, "Timer", Timer)
    row = racing.race("toy", lambda: "ours", lambda: "peer", lambda *_: None, 2, turns=3)
    assert calls == ["ours", "peer", "peer", "ours", "ours", "peer"]
    assert [row[key] for key in ("ratio", "ratio_low", "ratio_high", "threads")] == [3.0, 3.0, 3.0, 2]
    assert (row["ours_ms"], row["peer_ms"]) == (1.5, 4.5)


def test_a_race_without_its_peer_is_skipped_in_one_line_that_names_the_extra(monkeypatch, capsys):
    monkeypatch.setattr(racing.sys, "argv", ["toy.py"])
    racing.command("toy", replace(race_of("ols_attention"), needs="no_such_peer"))
    (line,) = capsys.readouterr().out.splitlines()
    assert line == 'toy: skipped, no no_such_peer here; pip install -e ".[bench]" brings it'


def test_a_race_at_one_and_two_threads_is_written(monkeypatch, tmp_path):
    def answered(call, env, **_):
        threads = call[call.index("--threads") + 1]
        assert env["OMP_NUM_THREADS"] == env["NUMBA_NUM_THREADS"] == threads
        row = {"name": "toy", "threads": int(threads), "ratio": 2.0, "ratio_low": 1.0, "ratio_high": 3.0}
        return SimpleNamespace(returncode=0, stdout=json.dumps(row))

    monkeypatch.setattr(racing.sys, "argv", ["toy.py"])
    monkeypatch.setattr(racing, "ROOT", tmp_path)
    monkeypatch.setattr(racing.subprocess, "run", answered)
    racing.command("toy", race_of("ols_attention"))
    (written,) = tmp_path.rglob("*.json")
    assert written == tmp_path / "_build/bench/toy.json"
    assert [row["threads"] for row in json.loads(written.read_text())["measured"]] == [1, 2]


def test_every_chapter_has_a_race():
    assert SLUGS == sorted(path.stem for path in ROOT.glob("notebooks/*.ipynb")) == sorted(DAMAGES)
