"""Every experiment on a device that is not the CPU: a tensor left behind raises, and the rows are the CPU's.

One condition of each experiment at tier ci runs on the CPU and on ``pretend``, which computes as the CPU does. So rows
may differ by the rounding of operations that torch puts together differently; an experiment that makes no tensor on
the device has to say why.
"""

import dataclasses
import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pretend
import pytest
import torch

import derived.papers
from derived.lab.record import disagreements

SLUGS = sorted(path.name for path in Path(derived.papers.__path__[0]).iterdir() if (path / "__init__.py").is_file())
EXPERIMENTS = {
    (slug, experiment.__name__): experiment
    for slug in SLUGS
    for experiment in importlib.import_module(f"derived.papers.{slug}.claims").EXPERIMENTS
}

#: Why an experiment makes no tensor on the device that it is given.
UNUSED = {
    "cactus": {
        "RandomPairs": "closed forms on small tables in float64",
        "Couplings": "a linear program in scipy",
        "ClosedForms": "an optimiser of scipy over problems of six numbers",
        "SecondOrder": "closed forms on a grid of 78 points",
        "Budget": "closed forms on a grid",
        "FlatFamily": "closed forms, one pair after the other",
        "FixedBudget": "closed forms, one pair after the other",
        "NearOptimal": "closed forms and bisections on small tables in float64",
        "TypicalProgram": "a linear program in scipy",
        "Blocks": "enumeration of short texts in Python",
        "Limits": "closed forms on small tables in float64",
    },
    "geometric_tax": {
        "FisherRao": "quadrature in numpy",
        "LawGrid": "differences of distribution functions in numpy",
        "Path": "quadrature in numpy",
    },
    "hierarchical_kernel": {
        "MultiplyAdds": "counts in Python's integers",
        "Budgets": "quadrature on small Gaussian mixtures in float64",
        "Quadratures": "a double integral on a grid, in float64",
        "Averages": "closed forms, one number each",
        "Memory": "closed forms, one number each",
        "Evaluators": "trees evaluated in Python",
        "Rules": "tables of counts in numpy",
    },
    "homogenized": {
        "OneToken": "scipy quadrature in numpy",
        "KernelDistance": "closed forms on a few hundred small clouds in float64",
    },
    "in_place_ttt": {
        "Logits": "closed forms on small tables in float64",
        "Keys": "random layers of small width, on the CPU",
        "Edges": "one small layer after the other, on the CPU",
    },
    "ols_attention": {
        "Reachability": "two numbers per run, trained by functions for the CPU alone",
        "Courses": "two numbers per run, trained by functions for the CPU alone",
        "TrainedEndPoint": "two numbers per run, trained by functions for the CPU alone",
        "Structure": "matrices of at most 3 x 3, trained by functions for the CPU alone",
        "RandomTasks": "one regression for matrices of 5 x 5, on the CPU",
        "LearnedInContext": "matrices of at most 6 x 6, trained by functions for the CPU alone",
        "DialCurves": "a figure of one data set",
        "ReadOutNoise": "one product of small matrices, on the CPU",
    },
    "sinkhorn": {
        "Plans": "small tables in float64 against Newton in numpy",
        "RowPrograms": "an optimiser of scipy over rows of nine numbers",
        "Contraction": "small tables in float64, one way after the other",
        "Increments": "small tables in float64",
        "Stability": "tables of 6 x 6 in float64",
        "Blocks": "linear programs in scipy",
        "BlockPlans": "linear programs in scipy",
        "ConditionalBlocks": "tables of 16 x 16 in float64",
        "Sinks": "linear programs in scipy",
        "Ranks": "tables of 10 x 10 in float64",
        "Causal": "tables of at most 8 x 8, tens of thousands of iterations",
        "Jumps": "two tokens against two",
        "Backward": "tables of 6 x 6 in float64",
        "Truncated": "tables of 8 x 8 in float64",
        "Drift": "central differences of a few points in float64",
        "Particles": "a cloud of 24 points in float64",
        "HeatLimit": "quadrature on a grid, in float64",
        "Temperature": "small tables in float64, and assignments in scipy",
        "PlanGrid": "one problem of 12 points",
    },
    "signal_propagation": {
        "ClosedForms": "quadrature in numpy",
        "Ends": "recurrences in numpy",
        "Regimes": "recurrences in numpy",
        "Window": "recurrences in numpy",
    },
    "stochastic_approximation": {
        "FiniteChains": "linear algebra of small matrices in numpy",
        "Averaged": "a recurrence of three numbers in Python",
        "Tilted": "quadrature for twenty small problems, on the CPU",
        "EqualMarginals": "closed forms on chains of two states",
        "SelfFed": "each token is drawn from those before it, on the CPU",
        "Approximation": "closed forms on a grid",
        "BestStep": "a search of scipy over one number",
    },
    "task_ecologies": {
        **dict.fromkeys(("Decomposition", "Planted", "Informed", "Hellinger"), "small tables in numpy"),
        **dict.fromkeys(("LeastCode", "SplitMerge", "Equidistant", "GlobalPath", "Recursion"), "small tables in numpy"),
        **dict.fromkeys(("Picture", "Injection", "AtOne", "OffEcology", "TwinDecoders"), "small tables in numpy"),
        **dict.fromkeys(("Certification", "Published"), "small tables in numpy"),
        "Price": "lists of a dozen numbers",
        "Sampling": "one draw in numpy",
        "Quasispecies": "matrices of 15 x 15 in numpy",
        "Recipes": "a dozen recipes in numpy",
        "Drift": "a recursion in numpy",
    },
}
#: What still fails, by its message; an entry goes when its case is mended.
KNOWN: dict[tuple[str, str], str] = {}
#: Columns of seconds, and of bytes that are counted where the pretended device holds none.
MEASURED = {
    ("cactus", "PairTime"): {"seconds"},
    ("cactus", "SamplerTime"): {"exact", "cactus", "tas", "rows"},
    ("hierarchical_kernel", "Overhead"): {"seconds"},
    ("sinkhorn", "AttentionTime"): {"softmax", "sinkhorn_3", "sinkhorn_21"},
    ("sinkhorn", "Arms"): {"seconds"},
    ("in_place_ttt", "LayerTime"): {"seconds", "pace", "flow", "peak"},
}
#: The first condition that uses the device, where the very first does not.
CONDITION = {("hierarchical_kernel", "Pruning"): 1, ("homogenized", "Freezing"): 2, ("in_place_ttt", "Forms"): 1}
SHORT = {"steps": 2, "draft_steps": 2, "prompts": 3, "calibration": 3, "length": 20, "m": 2, "deltas": (1.0,)}
#: Fields that are smaller here than at tier ci.
SIZES = {
    ("cactus", "RandomPairs"): {"pairs": 20},
    ("cactus", "FlatFamily"): {"largest": 4},
    ("cactus", "TrainedPair"): SHORT,
    ("cactus", "PairTime"): SHORT,
    ("geometric_tax", "Identities"): {"instances": 2},
    ("geometric_tax", "Noise"): {"n": 200, "replicates": 2},
    ("geometric_tax", "Unrelated"): {"replicates": 1, "shapes": ((100, 16),)},
    ("geometric_tax", "Pooled"): {"n": 40, "L": 32, "replicates": 2},
    ("geometric_tax", "Composite"): {"n": 60, "splits": 2, "replicates": 2},
    ("geometric_tax", "Relabelled"): {"instances": 1, "steps": 5},
    ("geometric_tax", "Refits"): {"n": 60, "K": 4, "p": 3, "replicates": 1},
    ("geometric_tax", "FisherRao"): {"codes": (2, 4)},
    ("geometric_tax", "Scalar"): {"codes": (2, 8)},
    ("geometric_tax", "Clouds"): {"n": 200, "codes": (4,), "replicates": 2},
    ("geometric_tax", "Windows"): {"n": 4, "L": 32, "replicates": 2},
    ("geometric_tax", "Channel"): {"replicates": 2, "steps": 100},
    ("geometric_tax", "Regressogram"): {"samples": (250,), "groups": 2, "size": 10},
    ("geometric_tax", "Strands"): {"n": 64, "L": 100, "replicates": 1},
    ("geometric_tax", "Dilution"): {"replicates": 4},
    ("geometric_tax", "Walks"): {"replicates": 2, "steps": 2},
    ("geometric_tax", "Variational"): {"instances": 2},
    ("geometric_tax", "Mine"): {"N": 60, "epochs": 3, "replicates": 2},
    ("geometric_tax", "Regimes"): {"N": 60, "epochs": 3, "replicates": 2},
    ("hierarchical_kernel", "Budgets"): {"instances": 2},
    ("hierarchical_kernel", "Quadratures"): {"instances": 2},
    ("hierarchical_kernel", "Entries"): {"longest": 40},
    ("hierarchical_kernel", "Rules"): {"trees": 300, "few": 40},
    ("hierarchical_kernel", "Evaluators"): {"trees": 40},
    ("hierarchical_kernel", "Leak"): {"steps": 5, "num_test": 50},
    ("hierarchical_kernel", "Reviews"): {"num_test": 20},
    ("homogenized", "HeadMoments"): {"heads": 100},
    ("homogenized", "OneLayer"): {"samples": 100},
    ("homogenized", "SlowDrift"): {"samples": 300},
    ("homogenized", "TwoTokens"): {"batch": 20},
    ("homogenized", "WeakError"): {"batch": 100},
    ("homogenized", "Hot"): {"replicates": 20, "tau": 1.0, "points": 3},
    ("homogenized", "Cold"): {"replicates": 10, "tau": 1.0, "points": 3},
    ("homogenized", "Freezing"): {"tokens": (8,), "h": 0.2},
    ("homogenized", "FinalRate"): {"tau": 1.0},
    ("homogenized", "SlowPaths"): {"time": 0.1},
    ("homogenized", "Clock"): {"cases": ((1, 16),), "tau": 1.6, "points": 3},
    ("homogenized", "Flows"): {"steps": (4, 8), "fine": 8},
    ("homogenized", "PrivateNoise"): {"tau": 1.0, "points": 3},
    ("homogenized", "Stack"): {"replicates": 4, "tau": 1.0, "points": 3},
    ("in_place_ttt", "Forms"): {"instances": 2},
    ("in_place_ttt", "Start"): {"instances": 1, "tokens": 12},
    ("in_place_ttt", "Recall"): {"steps": 2},
    ("ols_attention", "Reachability"): {"epochs": 50},
    ("ols_attention", "Courses"): {"epochs": 50},
    ("ols_attention", "Structure"): {"epochs": 100},
    ("ols_attention", "TrainedEndPoint"): {"epochs": 100},
    ("ols_attention", "RandomTasks"): {"num_tasks": 256},
    ("ols_attention", "LearnedInContext"): {"steps": 100},
    ("signal_propagation", "DeepOverlap"): {"width": 32, "inits": 3},
    ("signal_propagation", "Networks"): {"width": 32, "inits": 4},
    ("signal_propagation", "Regimes"): {"depth": 400},
    ("signal_propagation", "Window"): {"alphas": (0.2,)},
    ("sinkhorn", "RandomScores"): {"replicates": 4, "sizes": (32,)},
    ("sinkhorn", "LearnedCouplings"): {"steps": 2, "search": 1, "texts": 2, "lengths": (8,), "exact": 1},
    ("sinkhorn", "Arms"): {"steps": 2, "texts": 10},
    ("sinkhorn", "Causal"): {"iterations": 100},
    ("sinkhorn", "Particles"): {"n": 4, "steps": 2},
    ("sinkhorn", "Temperature"): {"iterations": 100},
    ("sinkhorn", "AttentionTime"): {"sizes": (16,), "repeats": 2},
    ("stochastic_approximation", "Absorbed"): {"replicas": 100, "steps": 200},
    ("stochastic_approximation", "Mixtures"): {"replicas": 40, "steps": 200},
    ("stochastic_approximation", "LogOdds"): {"replicas": 40, "steps": 200},
    ("stochastic_approximation", "Blocks"): {"blocks": 6},
    ("stochastic_approximation", "Exponents"): {"groups": 2, "size": 10, "steps": 600},
    ("stochastic_approximation", "Averaged"): {"steps": 2000},
    ("stochastic_approximation", "Central"): {"replicas": 40, "steps": 200},
    ("stochastic_approximation", "Covariance"): {"steps": 200},
    ("stochastic_approximation", "InfiniteOrder"): {"replicas": 40, "steps": 200},
    ("stochastic_approximation", "Renewal"): {"groups": 2, "size": 10, "steps": 600},
    ("stochastic_approximation", "Freezes"): {"windows": (32, 64), "replicas": 20, "block": 10},
    ("stochastic_approximation", "EarlyData"): {"replicas": 20},
    ("stochastic_approximation", "Shuffled"): {"window": 64, "replicas": 10},
    ("stochastic_approximation", "PhaseDiagram"): {"windows": (16, 32), "replicas": 10},
    ("stochastic_approximation", "SamplePaths"): {"steps": 128},
    ("stochastic_approximation", "LongRange"): {"groups": 2, "size": 10, "steps": 300},
    ("stochastic_approximation", "Readout"): {"groups": 2, "size": 5, "steps": 150},
    ("stochastic_approximation", "SelfFed"): {"replicas": 20, "steps": 50, "stored": 4},
    ("stochastic_approximation", "Bernoulli"): {"steps": 2, "validation": 4, "test": 6},
    ("stochastic_approximation", "Markov"): {"tokens": 512, "validation": 4, "test": 6},
    ("stochastic_approximation", "Switches"): {"updates": 4, "every": 1, "texts": 2},
    ("stochastic_approximation", "Tracking"): {"replicas": 10, "steps": 300, "burn_in": 100},
    ("stochastic_approximation", "Average"): {"replicas": 10, "steps": 64},
    ("stochastic_approximation", "Learners"): {"block": 20, "blocks": 2, "replicas": 4},
    ("task_ecologies", "Frozen"): {"replicates": 1, "worlds": 3, "contexts": 2},
    ("task_ecologies", "Imposed"): {"worlds": 3, "steps": 3},
    ("task_ecologies", "Quasispecies"): {"instances": 1},
    ("task_ecologies", "Recipes"): {"instances": 20},
    ("task_ecologies", "Drift"): {"simulations": 50},
    ("task_ecologies", "Population"): {"replicates": 2, "generations": 2, "founding": 3, "lifetime": 2, "held_out": 1},
    ("task_ecologies", "Abroad"): {"steps": 3},
    ("task_ecologies", "Complexity"): {"steps": 3},
    ("task_ecologies", "Rescue"): {"steps": 3},
}


def run(slug: str, name: str, device: torch.device) -> pd.DataFrame:
    case = (slug, name)
    experiment = dataclasses.replace(EXPERIMENTS[case].at("ci"), **SIZES.get(case, {}))
    condition = experiment.conditions()[CONDITION.get(case, 0)]
    return experiment.run(condition, seed=0, device=device, dtype=experiment.dtype)


def apart(there: pd.DataFrame, here: pd.DataFrame, deterministic, measured) -> list[str]:
    """What a record is compared by, and then every other float by 1e-4 of the largest of its column."""
    there, here = (rows.drop(columns=[*measured & {*rows}]) for rows in (there, here))
    found = disagreements(there, here, deterministic)
    for name in () if found else there.select_dtypes("float").columns.difference([*deterministic]):
        a, b = there[name].to_numpy(), here[name].to_numpy()
        largest = np.abs(b[np.isfinite(b)]).max(initial=0.0)
        far = ~np.isclose(a, b, rtol=0, atol=1e-4 * largest + 1e-9, equal_nan=True)
        if far.any():
            found.append(f"{name}: {far.sum()} of {len(a)} rows differ, by {np.nanmax(np.abs(a - b)):.2g}")
    return found


def compare(slug: str, name: str) -> None:
    """RuntimeError or AssertionError where the experiment does not work on another device as it does on the CPU."""
    with pretend.device() as (device, made):
        there = run(slug, name, device)
    assert {*EXPERIMENTS[slug, name].deterministic} <= {*there.columns}, "a deterministic column that no row has"
    reason = UNUSED.get(slug, {}).get(name)
    if reason is None:
        assert made.count, (
            f"{name} ignores the device that it is given (no tensor was made there) and UNUSED has no reason"
        )
        measured = MEASURED.get((slug, name), set())
        found = apart(there, run(slug, name, torch.device("cpu")), EXPERIMENTS[slug, name].deterministic, measured)
        assert not found, "; ".join(found)
    else:
        assert not made.count, f"{name} made {made.count} tensors on the device, but UNUSED says: {reason}"


@pytest.mark.parametrize(("slug", "name"), EXPERIMENTS)
def test_on_another_device_an_experiment_gives_the_same_rows(slug, name):
    if (slug, name) in KNOWN:
        with pytest.raises((AssertionError, RuntimeError), match=KNOWN[slug, name]):
            compare(slug, name)
    else:
        compare(slug, name)


@pytest.mark.parametrize("slug", SLUGS)
def test_the_tables_name_experiments_that_there_are(slug):
    named = {*UNUSED.get(slug, {})} | {name for one, name in (*KNOWN, *MEASURED, *CONDITION, *SIZES) if one == slug}
    assert named <= {name for one, name in EXPERIMENTS if one == slug}
