"""Predicts what a run costs on a card, from counted operations and the card's published figures.

results/costs.json   what each experiment would do at a recorded tier (``counting``)
cards.yml            rates, memory, bandwidth, latency and price of each card

seconds = host + launches · latency + (operations / rate + bytes / bandwidth) / share of them that is reached
host    = what the record of tier cpu took longer than a core would by this count: work outside torch
pilot   = on a core, in place of all this: what small pieces took there, carried on (``piloting``)

What cannot be counted is estimated roughly: a card takes as long as the core took for the record of tier cpu, times the
growth of its loops (``recorded`` seconds). What tier ci truly does, carried on by powers, is rough, too (``carried``).
"""

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from statistics import median
from typing import Any

import yaml

from derived.book.house import House, write_whole

RATES = {"float64": "fp64", "float32": "fp32", "bfloat16": "bf16", "float16": "bf16", "complex128": "fp64"}
GIGA, TERA = 1e9, 1e12
FILE = "results/costs.json"
COUNTED = {"launches", "recorded"}  # one of these is in every count
TIMED = ("pilot", "whole")  # what ``piloting`` adds to a count
NEAR = 2  # the factor up to which a recorded time confirms a predicted one
RECORDED = ("host", "recorded")  # seconds in a count that come from the record of tier cpu


@dataclass(frozen=True)
class Cost:
    """What a run takes on one card."""

    card: str
    seconds: float
    memory: float  # bytes
    dollars: float
    fits: bool = True
    rough: bool = False  # not counted, or partly

    def __str__(self) -> str:
        how, article = "of the order of" if self.rough else "about", "an" if self.card[0] in "AH" else "a"
        held = f", {self.memory / GIGA:.2g} GB" if self.memory else ""
        return f"{how} {spell(self.seconds)} on {article} {self.card}{held}, {dollars(self.dollars)}"


def spell(seconds: float) -> str:
    """Write predicted seconds with two digits, in the unit that suits them.

    >>> [spell(each) for each in (0.2, 100, 5000, 1e6)]
    ['1 s', '1.7 min', '1.4 h', '12 days']
    """
    for unit, length, least in (("days", 86400, 2), ("h", 3600, 1), ("min", 60, 1)):
        if seconds >= least * length:
            return f"{seconds / length:.2g} {unit}" if seconds < 99.5 * length else f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def dollars(price: float) -> str:
    """Write a price in US dollars, a cent at least."""
    return f"{max(price, 0.01):.2f} USD" if price < 99.5 else f"{price:.0f} USD"


def name_of(paper: str, experiment: str, tier: str) -> str:
    """Name a run as the counts do."""
    return f"{paper}/{experiment}/{tier}"


def counts(house: House) -> dict[str, dict[str, Any]]:
    """Read the counts by name; none where nothing was counted."""
    path = house.root / FILE
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def keep(house: House, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Note counts or pilots, each with the hash of its configuration (``of``); of the same one, the other stays."""
    known = counts(house)
    for name, entry in found.items():
        old = known.get(name, {})
        stay = old if old.get("of") == entry["of"] else {}
        known[name] = {key: stay[key] for key in stay if (key in TIMED) != ("pilot" in entry)} | entry
    write_whole(house.root / FILE, json.dumps(dict(sorted(known.items())), indent=1) + "\n")


@functools.cache
def cards() -> list[dict[str, Any]]:
    """Read the cards, the CPU first."""
    return yaml.safe_load(resources.files("derived.book").joinpath("cards.yml").read_text("utf-8"))["cards"]


def on(card: Mapping[str, Any], count: Mapping[str, Any]) -> Cost:
    """Predict a run on a card."""
    adds = sum(2 * count.get(kind, 0) / (card[rate] * TERA) for kind, rate in RATES.items())
    moved = count.get("bytes", 0) / (card["bandwidth"] * GIGA)
    started = count.get("launches", 0) * card["latency"] * 1e-6
    seconds = sum(count.get(key, 0) for key in RECORDED) + started + (adds + moved) / card["share"]
    memory = count.get("held", 0)
    fits, rough = memory < card["memory"] * GIGA, not count.keys().isdisjoint((*RECORDED, "carried"))
    if "pilot" in count and (card["name"] == cards()[0]["name"] or not COUNTED & count.keys()):
        seconds, rough = count["pilot"], card["name"] != cards()[0]["name"]
    return Cost(card["name"], seconds, memory, seconds / 3600 * card["hour"], fits, rough)


def predicted(house: House, name: str) -> list[Cost]:
    """Predict a run on every card; empty where it was not counted."""
    count = counts(house).get(name)
    return [on(card, count) for card in cards()] if count and {*COUNTED, "pilot"} & count.keys() else []


def to_rent(costs: list[Cost]) -> Cost | None:
    """Choose the GPU on which a run is cheapest, of those that hold it; with memory uncounted, no small one."""
    known = bool(costs) and costs[0].memory > 0
    return min((cost for cost in costs[1 if known else 2 :] if cost.fits), key=lambda cost: cost.dollars, default=None)


def where(house: House, paper: str, experiment: str, tier: str) -> Cost | None:
    """Choose where to make a run that is missing: on a core at tier cpu, else on the GPU to rent."""
    costs = predicted(house, name_of(paper, experiment, tier))
    return next(iter(costs), None) if tier == "cpu" else to_rent(costs)


def priced(house: House, row: Mapping[str, Any]) -> dict[str, Any]:
    """Give a row of the ledger the cost of the run that it lacks, and name it in its reason."""
    if row["verdict"] != "not run" or row["tier"] == "ci" or not row["experiment"]:
        return {"cost": None}
    cost = where(house, row["paper"], row["experiment"], row["tier"])
    return {"cost": asdict(cost), "reason": f"{cost}, as predicted; {row['reason']}"} if cost else {"cost": None}


def of_record(house: House, paper: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Give the state of a record its cost, by the price of its machine, and the seconds that were predicted for it; a
    missing one gets its predicted cost."""
    if record["state"] == "missing":
        cost = where(house, paper, record["experiment"], record["tier"])
        return {**record, "cost": asdict(cost) if cost else None}
    made_on = next((card for card in cards() if card["name"] in record["device"]), cards()[0])
    seconds, memory = record["seconds"], record["peak_memory_mb"] * 2**20
    cost = Cost(made_on["name"], seconds, memory, seconds / 3600 * made_on["hour"])
    count = counts(house).get(name_of(paper, record["experiment"], record["tier"]), {})
    if record["tier"] == "cpu":  # a record does not predict itself
        count = {key: number for key, number in count.items() if key not in RECORDED}
    return {
        **record,
        "cost": asdict(cost),
        "predicted": on(made_on, count).seconds or None,
        "whole": count.get("whole"),
    }


def near(ratios: Iterable[float]) -> int:
    """Count ratios that are between half and twice."""
    return sum(1 / NEAR <= ratio <= NEAR for ratio in ratios)


@dataclass
class Tested:
    """How the records of a card compare with their predictions."""

    made: int = 0
    ratios: list[float] = field(default_factory=list)  # recorded over predicted seconds, where there is a prediction
    again: list[float] = field(default_factory=list)  # recorded over those of the same run on the core of the pilots

    @property
    def near(self) -> int:
        """Count the records whose time confirms the predicted one."""
        return near(self.ratios)

    @property
    def near_again(self) -> int:
        """Count the records whose time the same run confirms: no prediction could do better."""
        return near(self.again)

    @property
    def middle(self) -> float:
        """Find the median ratio."""
        return median(self.ratios)


def tested(records: Iterable[Mapping[str, Any]]) -> dict[str, Tested]:
    """Compare records with their predictions, card by card."""
    found: dict[str, Tested] = {}
    for record in (each for each in records if each["state"] != "missing"):
        of_card = found.setdefault(record["cost"]["card"], Tested())
        of_card.made += 1
        for known, ratios in (("predicted", of_card.ratios), ("whole", of_card.again)):
            if record.get(known):
                ratios.append(record["seconds"] / record[known])
    return found


def piloted(house: House) -> Tested:
    """Compare pilots with what the same core took for the whole, where that is short."""
    pilots = [count for count in counts(house).values() if "pilot" in count]
    return Tested(len(pilots), [count["whole"] / count["pilot"] for count in pilots if "whole" in count])
