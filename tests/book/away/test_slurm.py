"""Records made by the jobs of a real Slurm: one controller and one node with a card that is none, on loopback."""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import dask
import press
import pytest

from derived.book.away import clusters
from derived.book.house import House, UserError

PATH = f"{os.environ['PATH']}:/usr/sbin"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def slurm(house, tmp_path_factory):
    """The two daemons without munge, and the folder of their configuration."""
    if not all(shutil.which(name, path=PATH) for name in ("slurmctld", "slurmd", "sbatch")):
        pytest.skip("there is no Slurm here; on Debian: apt-get install slurmctld slurmd slurm-client")
    pytest.importorskip("dask_jobqueue")  # its defaults stand before a test changes one
    folder, host = tmp_path_factory.mktemp("slurm"), socket.gethostname()
    (folder / "gres.conf").write_text("Name=gpu File=/dev/zero\n")
    (folder / "slurm.conf").write_text(
        f"ClusterName=one\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={free_port()}\nSlurmdPort={free_port()}\n"
        f"SlurmUser={getpass.getuser()}\nSlurmdUser={getpass.getuser()}\nAuthType=auth/none\nCredType=cred/none\n"
        f"StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool\nSlurmctldPidFile={folder}/ctld.pid\n"
        f"SlurmdPidFile={folder}/d.pid\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n"
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nSlurmdParameters=config_overrides\nGresTypes=gpu\n"
        f"NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=20000 Gres=gpu:1 State=UNKNOWN\n"
        "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
    )
    for name in ("state", "spool"):
        (folder / name).mkdir()
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        patch.setenv("TOLD", str(folder))
        patch.setenv("PYTHONPATH", str(house / "src"))
        patch.setenv("DASK_JOBQUEUE__SLURM__SCHEDULER_OPTIONS", '{"host": "127.0.0.1"}')
        for name in ("slurmctld", "slurmd"):
            with open(folder / f"{name}.log", "w") as log:
                started = subprocess.Popen([shutil.which(name, path=PATH), "-D"], stdout=log, stderr=log)
            stack.callback(started.wait)
            stack.callback(started.terminate)
        for _ in range(300):
            if "idle" in ask("sinfo", "--noheader", "--format=%t"):
                break
            time.sleep(0.1)
        else:
            pytest.skip(f"Slurm does not start here: {(folder / 'slurmctld.log').read_text()[-300:]}")
        yield folder
        ask("scancel", "--user", getpass.getuser())


def ask(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True).stdout


def rows(house: Path, name: str) -> bytes:
    return (house / "results/toy" / name / "cpu/rows.parquet").read_bytes()


def test_jobs_of_slurm_make_the_rows_of_this_machine_and_a_cancelled_one_is_replaced(house, slurm):
    assert press.process(house, "record", "toy", "Others", "--jobs", "1").returncode == 0
    slow, drafts = slurm / "slow", house / "_build/record/toy/Draws"
    slow.touch()
    order = ["record", "toy", "Draws", "--jobs", "1", "--on", "slurm"]
    with press.start(house, *order, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        while not [*drafts.rglob("[0-9]*.parquet")] and running.poll() is None:
            time.sleep(0.1)
        first = ask("squeue", "--noheader", "--format=%A").split()
        ask("scancel", *first)
        slow.unlink()
        said, _ = running.communicate(timeout=300)
    assert running.returncode == 0, said
    assert len(first) == 1
    assert rows(house, "Draws") == rows(house, "Others")
    assert {*ask("squeue", "--noheader", "--format=%T").split()} <= {"COMPLETING"}


CARD = """
import subprocess
from pathlib import Path
from distributed import Client
from derived.book.away import clusters
from derived.book.house import House
from derived.book.judge import recording

house = House(Path.cwd())
with clusters.opened(house, "slurm", 1, card=True) as address:
    print(subprocess.run(["squeue", "--noheader", "--format=%b"], capture_output=True, text=True).stdout.strip())
    with Client(address) as client:
        (worker,) = client.scheduler_info(n_workers=-1)["workers"].values()
    print(worker["resources"], worker["nthreads"])
    recording.record(house, "toy", ["Others"], "cpu", 0, "cpu", 1, address)
"""


def test_a_job_with_a_card_is_a_worker_with_a_tag_and_does_the_conditions(house, slurm):
    before = rows(house, "Others")
    command = [sys.executable, "-c", CARD]
    done = subprocess.run(command, cwd=house, env=press.environment(house), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:3] == ["gres:gpu:1", "{'GPU': 1.0} 1"]
    assert rows(house, "Others") == before


def test_a_job_is_one_worker_where_a_sites_own_file_asks_for_more(house, slurm):
    with dask.config.set({"jobqueue.slurm.processes": 2}), clusters.slurm(House(house), card=False) as cluster:
        assert "--nworkers 2" not in cluster.job_script()


def test_what_slurm_would_not_take_is_one_clear_line(house, slurm, monkeypatch):
    with dask.config.set({"jobqueue.slurm.queue": "moon"}), pytest.raises(UserError) as told:
        clusters.slurm(House(house), card=False)
    assert str(told.value).startswith("Slurm takes no such job (")
    assert "invalid partition" in str(told.value).lower()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match="there is no sbatch here: give the same command on a login node"):
        clusters.slurm(House(house), card=False)
