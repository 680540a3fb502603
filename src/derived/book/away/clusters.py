"""Asks a cluster for workers through Dask's own deployers, one thread each and one condition a card.

What a site needs besides (partition, account, walltime, memory; image, namespace) stands where Dask looks for it: under
``jobqueue.slurm`` and ``kubernetes`` in ~/.config/dask/*.yaml.
"""

import contextlib
import logging
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

from derived.book.house import House, UserError

CARD = ["--resources", "GPU=1"]  # the tag of a worker that has a card: derived.book.record.workers
KINDS = ("slurm", "k8s")


@contextlib.contextmanager
def opened(house: House, kind: str, number: int, card: bool) -> Iterator[str]:
    """Start workers, wait for the first, and yield the address of their scheduler; workers that die are replaced."""
    for name in ("distributed", "distributed.core"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is told in one line
    try:
        cluster = slurm(house, card) if kind == "slurm" else k8s(card)
    except ModuleNotFoundError:
        raise UserError(f"{kind} needs an extra: pip install 'transformers-derived[{kind}]'") from None
    with cluster:  # its closing cancels the jobs
        cluster.adapt(minimum=number, maximum=number)
        print(f"asked {kind} for {number} workers; waiting for the first", flush=True)
        cluster.wait_for_workers(1)
        yield cluster.scheduler_address


def slurm(house: House, card: bool) -> Any:
    """Describe jobs of one worker each; Slurm is asked whether it would take them before any is sent."""
    if shutil.which("sbatch") is None:
        raise UserError("there is no sbatch here: give the same command on a login node of the cluster")
    import dask
    from dask_jobqueue import SLURMCluster

    logs = house.build / "away" / "slurm"
    logs.mkdir(parents=True, exist_ok=True)

    def known(name: str) -> Any:
        return dask.config.get(f"jobqueue.slurm.{name}", None)

    cluster = SLURMCluster(
        cores=1,
        processes=1,
        job_cpu=known("job-cpu") or known("cores") or 1,
        memory=known("memory") or "8GiB",
        log_directory=known("log-directory") or str(logs),
        job_extra_directives=[*(known("job-extra-directives") or []), *(["--gres=gpu:1"] if card else [])],
        worker_extra_args=[*(known("worker-extra-args") or []), *(CARD if card else [])],
    )
    asked = subprocess.run(["sbatch", "--test-only"], input=cluster.job_script(), capture_output=True, text=True)
    if asked.returncode:
        cluster.close()
        told = asked.stderr.strip().splitlines()[-1]
        raise UserError(f"Slurm takes no such job ({told}); mend jobqueue.slurm in ~/.config/dask/jobqueue.yaml")
    return cluster


def k8s(card: bool) -> Any:
    """Start a cluster of Dask's operator; its image must have this package."""
    import kr8s
    from dask_kubernetes.operator import KubeCluster

    try:
        kr8s.api()  # a cluster that is made half complains once more at the end
        return KubeCluster(custom_cluster_spec=pods(card), n_workers=0)
    except Exception as error:  # its client has an error class for each way to have no cluster
        raise UserError(f"no Kubernetes cluster with Dask's operator ({type(error).__name__}: {error})") from None


def pods(card: bool) -> dict[str, Any]:
    """Describe the cluster: workers of one thread, each with a card; the scheduler has none."""
    import dask
    from dask_kubernetes.operator import make_cluster_spec

    command = ["dask", "worker", "--nthreads", "1", *(CARD if card else [])]
    known = dask.config.get("kubernetes")
    spec = make_cluster_spec("derived", image=known["image"], n_workers=0, env=known["env"], worker_command=command)
    if card:
        spec["spec"]["worker"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    return spec
