"""What of the terms of trained rows changed after rows existed, and which expected verdicts followed a record."""

from derived.lab.claims import Change

LONGER = Change(
    "2026-11-23",
    "Networks train for 1,600 steps in place of 800, twelve to an arm in place of eight; the rates are 1.5e-3 to 2.5e-2 "
    "in place of 5e-4 to 1e-2; weights, data and batches are drawn anew. Every criterion stays. The record of 800 steps, "
    "kept in the repository's history, is a second pilot.",
    "There the reference HKT-E1.s was undecided and frozen averages chose the largest rate that was offered: training "
    "had stopped too early, and the rates ended too soon. No arm had chosen the smallest. Nothing of the new run had "
    "been seen.",
)
MENDED = Change(
    "2026-11-23",
    "Mardia's z was taken on the models of the pilot, with all directions of the features.",
    "Features of level 0 sum to zero, so one direction is rounding, which z counted; it is projected out now, on the "
    "models of the tuned comparison.",
)


def _followed(why: str) -> tuple[Change, ...]:
    return (Change("2026-11-23", "The expected verdict was set after the record; the criterion stayed.", why),)


_DECIDED = _followed("Undecided had been expected; the record of 1,600 steps decides.")
_BACK = _followed(
    "It had been expected to hold, and after the record of 800 steps to be undecided; in that of 1,600 steps it holds."
)
FOLLOWED = {"o": _DECIDED, "q": _DECIDED, "s": _BACK, "t": _BACK} | {
    "r": _followed(
        "Undecided had been expected, and after the record of 800 steps that it fails; that of 1,600 steps does not decide."
    )
}  # by the last letter of HKT-E1.o to t; HKT-E1.p was expected to be undecided all along
