"""What the tests of several topics share: promises of every table of rows, and the temperature of chains."""

import numpy as np
import pytest

from derived.lab.experiment import run_condition
from derived.papers.homogenized.model import gram


@pytest.fixture
def complete():
    """The promised columns are there, and every number is finite."""

    def check(rows, columns) -> None:
        for experiment, table in rows.items():
            assert columns[experiment] <= set(table.columns)
            numbers = table.drop(columns="logit_std", errors="ignore").select_dtypes("number")  # infinite where cold
            assert np.isfinite(numbers.to_numpy()).all()

    return check


@pytest.fixture
def has_its_temperature(monkeypatch):
    """The law that a chain takes has the deviation of the condition: a theory made from the same law cannot tell."""

    def check(topic, experiment) -> None:
        laws, chains = [], 0

        def noting(right, place: int):
            def note(*given, **options):
                laws.append(given[place].logit_std(given[place + 1]))  # the law, and the temperature behind it
                return right(*given, **options)

            return note

        monkeypatch.setattr(topic, "simulate_gram", noting(gram.simulate_gram, 4))
        if hasattr(topic, "gram_step"):
            monkeypatch.setattr(topic, "gram_step", noting(gram.gram_step, 3))
        small = experiment.at("tiny")
        for condition in small.conditions():
            laws.clear()
            run_condition(small, condition, 0, "cpu")
            own = {**vars(small), **condition}["logit_std"]
            assert laws == pytest.approx([own] * len(laws))
            chains += len(laws)  # some conditions run none
        assert chains

    return check
