"""Runs conditions in processes of this machine or by the workers of a Dask cluster, behind one standard interface.

A worker that dies loses the condition that it had: Dask gives it to another one. Workers that have the resource GPU
(``dask worker ADDRESS --nthreads 1 --resources GPU=1``) do one condition a card, and workers without it do none.
A worker whose files of ``derived`` or whose libraries differ from those here is refused before it runs anything, also
one that joins later, and one that may have loaded these files before they changed.
"""

import contextlib
import hashlib
import logging
import os
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import torch

from bookbuilder.paths import UserError, exit_with_parent, processor
from bookbuilder.run.driver import ONE_THREAD
from derived.lab.experiment import resolve_device
from derived.lab.record import versions
from derived.lab.sources import PACKAGE_ROOT

PATIENCE = 30  # seconds in which a scheduler must answer, and have a worker
MATTER = ("python", "torch", "numpy", "scipy", "pandas")  # libraries that must be alike where conditions run


def workers(jobs: int, scheduler: str) -> contextlib.AbstractContextManager[Executor]:
    """Open the processes of this machine, or those of a cluster by the address of its scheduler."""
    return _cluster(scheduler) if scheduler else _pool(jobs)


@contextlib.contextmanager
def _cluster(scheduler: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise UserError("a cluster needs the extra: pip install 'transformers-derived[cluster]'") from None
    for name in ("distributed", "distributed.client", "distributed.core"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # UserError says in one line what goes wrong
    try:
        client = Client(scheduler, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise UserError(f"no scheduler at {scheduler!r} ({cause}); give one like tcp://127.0.0.1:8786") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
            with _alike(client):
                found = client.scheduler_info(n_workers=-1)["workers"].values()
                tagged = any(worker["resources"].get("GPU") for worker in found)
                yield client.get_executor(pure=False, **({"resources": {"GPU": 1}} if tagged else {}))
        except TimeoutError:
            command = f"dask worker {scheduler} --nthreads 1"
            raise UserError(f"the scheduler at {scheduler} has no worker; start one: {command}") from None
        except CancelledError:
            raise UserError(
                f"the scheduler at {scheduler} is gone; finished conditions are kept, the same command continues"
            ) from None


@contextlib.contextmanager
def _alike(client: Any) -> Iterator[None]:
    """Let only workers whose code and libraries are those of this process join; UserError names one that differs."""
    from distributed import WorkerPlugin

    here = versions()
    wanted = (digests(PACKAGE_ROOT), {name: here[name] for name in MATTER})
    known = {*client.scheduler_info(n_workers=-1)["workers"]}

    class Alike(WorkerPlugin):  # defined here, so that it reaches workers by value and asks nothing of their code
        name = "derived: the same code and libraries"

        def setup(self, worker: Any) -> None:
            """Raise on a worker that was there; end one that joins, before it is handed anything."""
            import os
            import sys

            if not (fault := self.fault() or self.loaded(worker)):
                return
            words = f"the worker {worker.address} {fault}"
            if worker.address in known:
                raise RuntimeError(words)
            print(words, file=sys.stderr, flush=True)
            os._exit(1)

        def fault(self) -> str:
            import hashlib
            import importlib.metadata
            import importlib.util
            import pathlib
            import platform

            files, libraries = wanted
            spec = importlib.util.find_spec("derived")
            if spec is None:
                return "has no package derived"
            [root] = spec.submodule_search_locations
            for name in {*files, *(str(path.relative_to(root)) for path in pathlib.Path(root).rglob("*.py"))}:
                path = pathlib.Path(root, name)
                here = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
                if here != files.get(name):
                    return f"has another derived/{name}"
            for name, version in libraries.items():
                try:
                    found = platform.python_version() if name == "python" else importlib.metadata.version(name)
                except importlib.metadata.PackageNotFoundError:
                    found = "of no version"
                if found != version:
                    return f"has {name} {found}, and here is {version}"
            return ""

        def loaded(self, worker: Any) -> str:
            """Compare with the files of an earlier recording, whose modules the worker still holds in memory."""
            files, _ = wanted
            before = vars(worker).setdefault("files_of_derived", files)
            changed = [name for name in {**before, **files} if before.get(name) != files.get(name)]
            return f"loaded derived/{changed[0]} before it changed" if changed else ""

    try:
        try:
            client.register_plugin(Alike())
        except RuntimeError as error:
            cure = "give it this checkout and its environment, or start it again"
            raise UserError(f"{error}; nothing was run or saved: {cure}") from None
        yield
    finally:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            if client.status == "running":  # or it would be looked for, for as long as PATIENCE says
                client.unregister_worker_plugin(Alike.name)


def digests(root: Path) -> dict[str, str]:
    """The SHA-256 of each Python file of a package, by its path in it."""
    paths = sorted(root.rglob("*.py"))
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


@contextlib.contextmanager
def _pool(jobs: int) -> Iterator[Executor]:
    os.environ.update(ONE_THREAD)  # inherited by the workers, which have not imported torch yet
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=exit_with_parent, initargs=(os.getpid(),))
    try:
        yield pool
    except BaseException:  # an interrupt must not wait for conditions that take minutes; finished ones are kept
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.Error):  # it has ended by itself
                if "spawn_main" in " ".join(child.cmdline()):  # a worker, not multiprocessing's own tracker
                    child.kill()
        pool.shutdown(cancel_futures=True)  # else Python, as it ends, may meet a thread of the pool that ends, too
        raise
    pool.shutdown()


def machine(device: str) -> tuple[str, str]:
    """Find the kind of a device where this runs, and its name; UserError if it is not there."""
    try:
        place = resolve_device(device)
    except ValueError as error:
        raise UserError(str(error)) from None
    if place.type == "cuda":
        return "cuda", torch.cuda.get_device_name(place)
    return "cpu", f"{processor()}, one core per condition"


def result_of(future: Future, condition: Mapping[str, Any]) -> tuple[pd.DataFrame, float, float]:
    """Return what a condition gave, a failed row for one that killed its workers again and again; the others go on."""
    try:
        return future.result()
    except (BrokenExecutor, CancelledError):  # all of the work has stopped, not one condition
        raise
    except Exception as error:
        failure = {"failure": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        return pd.DataFrame([{**condition, **failure}]), 0.0, 0.0
