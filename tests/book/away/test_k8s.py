"""What Kubernetes would be asked for; no cluster is needed to say it."""

import sys

import pytest

from derived.book.away import clusters
from derived.book.house import House, UserError


def test_each_worker_has_one_thread_and_one_card_and_the_scheduler_has_none():
    pytest.importorskip("dask_kubernetes")
    spec = clusters.pods(card=True)["spec"]
    (worker,), (scheduler,) = (spec[name]["spec"]["containers"] for name in ("worker", "scheduler"))
    assert worker["args"][:6] == ["dask", "worker", "--nthreads", "1", "--resources", "GPU=1"]
    assert worker["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
    assert not scheduler["resources"]
    assert "--resources" not in clusters.pods(card=False)["spec"]["worker"]["spec"]["containers"][0]["args"]


def test_without_the_extra_one_clear_line_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "kr8s", None)
    with pytest.raises(UserError) as told, clusters.opened(House(tmp_path), "k8s", 1, card=True):
        raise AssertionError("there is a cluster")
    assert str(told.value) == "k8s needs an extra: pip install 'transformers-derived[k8s]'"
