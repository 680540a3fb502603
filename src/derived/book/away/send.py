"""Sends an order to where ``--on`` says, and takes in what comes back."""

from collections.abc import Sequence

from derived.book.away import arrival, clusters, parcel, script, ssh
from derived.book.house import House, UserError
from derived.book.judge import recording
from derived.lab.experiment import Experiment


def send(
    house: House,
    chosen: Sequence[type[Experiment]],
    tier: str,
    seed: int,
    device: str,
    jobs: int,
    uncommitted: bool,
    target: str,
) -> None:
    """Make records on another machine. A tier gpu that does not say on which device needs a card."""
    kind, _, host = target.partition(":")
    device = "cuda" if (tier, device) == ("gpu", "auto") else device
    if target in clusters.KINDS:
        number = jobs or min(8, max(len(one.at(tier).conditions()) for one in chosen))
        names = [one.__name__ for one in chosen]
        with clusters.opened(house, target, number, device == "cuda") as address:
            recording.record(house, chosen[0].paper(), names, tier, seed, device, jobs, address, uncommitted)
        return
    if target != "script" and (kind != "ssh" or not host):
        raise UserError(f"--on {target}: no such place; use ssh:HOST, slurm, k8s, or script for a hosted job")
    for one in chosen:
        recording.check_seed(one, tier, seed)
        recording.history(house, one, uncommitted)
        if one.needs:
            raise UserError(
                f"{one.__name__} reads real weights or data, which stay here: leave it out, or record it here"
            )
    order = {
        "paper": chosen[0].paper(),
        "experiments": [one.__name__ for one in chosen],
        "tier": tier,
        "seed": seed,
        "device": device,
        "jobs": jobs,
    }
    packed = parcel.pack(house, order)
    if target == "script":
        names = " ".join([order["paper"], *order["experiments"]])
        back = f"derived record {names} --tier {tier} --seed {seed} --fetched LOG"
        for path in script.write(house.build / "away", packed, f"{order['paper']}-{tier}", back):
            print(f"made {path}")
        print(f"its log holds the records: {back}")
    else:
        arrival.take(house, ssh.lines(host, packed), chosen, tier, seed, uncommitted)
