"""What the paper prints, and what counting says of it: scores before and after, and the size of their chance.

name     meaning                                                     unit
before   score of the baseline, trained with the same tokens      percent
after    score with In-Place TTT                                     percent
items    questions behind a score                                    count
error    standard error of after - before for independent items      percentage points
scratch  whether the models were trained from scratch                bool
"""

import math

import pandas as pd

from derived.lab.checks import check_count

LENGTHS = ("4k", "8k", "16k", "32k", "64k", "128k", "256k")
# RULER in version 1: Tables 1 and 2, continual training; Table 3, from scratch. [paper; 5.07 from digests]
SCORES = {
    "Qwen3-4B": ((96.6, 94.1, 92.1, 88.7, 74.3, 74.8, 41.7), (96.1, 95.6, 92.7, 89.3, 78.7, 77.0, 43.9)),
    "LLaMA-3.1-8B": ((93.9, 92.1, 92.5, 91.1, 81.6), (94.4, 93.0, 93.3, 91.7, 83.7)),
    "Qwen3-14B": ((96.8, 95.0, 94.6, 90.7, 67.9), (97.2, 95.7, 95.2, 91.2, 70.6)),
    "4B from scratch, full attention": ((45.77, 38.09, 6.58), (49.98, 43.82, 19.99)),
    "4B from scratch, window attention": ((14.77, 9.91, 5.07), (28.33, 26.80, 7.57)),
}


def gains(items: int = 1300) -> pd.DataFrame:
    """Each gain with its standard error if a score is the share of ``items`` right answers: p (1 - p) / items each.

    1,300 is 13 tasks with 100 samples, the sizes in the released configuration [repo]. ValueError for items < 1.

    >>> gains().query("model == 'Qwen3-4B' and length == '64k'")[["gain", "error"]].round(1).values.tolist()
    [[4.4, 1.7]]
    """
    check_count("items", items)
    rows = []
    for model, (before, after) in SCORES.items():
        for length, one, two in zip(LENGTHS, before, after, strict=False):
            variance = sum(p / 100 * (1 - p / 100) for p in (one, two)) / items
            error = 100 * math.sqrt(variance)
            rows.append((model, length, one, two, two - one, error, (two - one) / error))
    found = pd.DataFrame(rows, columns=["model", "length", "before", "after", "gain", "error", "errors"])
    return found.assign(scratch=found["model"].str.contains("from scratch"))
