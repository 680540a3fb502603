"""The figures of the exact topics name their axes, have no title, and say in their alt text what the rows say."""

import matplotlib
import pandas as pd

from derived.papers.task_ecologies import codes, deployment, evidence, loss
from derived.papers.task_ecologies.codes import Equidistant, GlobalPath, Picture
from derived.papers.task_ecologies.deployment import Injection, OffEcology
from derived.papers.task_ecologies.evidence import Certification
from derived.papers.task_ecologies.loss import Informed

matplotlib.use("agg")
EXPERIMENTS = (Equidistant, GlobalPath, Picture, Injection, OffEcology, Certification, Informed)


def test_loss(rows, tells):
    told = rows[Informed].query("kind == 'revealing'")["excess"]
    tells(loss.informed(rows[Informed]), f"from {told.max():.3f} to 0.000")


def test_codes(rows, tells):
    picture = rows[Picture]
    begins = picture["begins"].dropna()
    tells(codes.excess_and_complexity(picture), "52 partitions", "2 have no excess", f"{len(begins)} partitions lie")
    tells(codes.lines(picture), f"prices {begins[begins > 0].min():.3f}", f"{picture['threshold'][0]:.3f}")
    tells(codes.equidistant(rows[Equidistant]), "0.841 at 3, 0.750 at 4")
    even = pd.DataFrame([{"n": 5, "epsilon": 0.3, "first": 0.09, "threshold": 0.12}])
    tells(codes.walls(picture, even), "4 from price 0.000", "all five join at 0.090", "pays, at 0.120")
    shares = rows[GlobalPath].groupby(["kind", "replicate"])["matched"].mean().groupby("kind").mean()
    tells(codes.foretold(rows[GlobalPath]), f"family: {shares['family']:.2f} predicted")


def test_deployment(rows, tells):
    tells(deployment.thresholds(rows[Injection]), "passes its level at 0.30", "price at 0.40", "of 8 draws")
    table = rows[OffEcology]
    tells(
        deployment.off_ecology(table), f"{len(table)} pairs", f"{table.loc[table['size'] > 2, 'own'].max():.2f} of it"
    )


def test_evidence(rows, tells):
    table = rows[Certification]
    share = table.loc[table["n"] == 30, "failed"].mean()
    tells(evidence.certification(table), f"{share:.3f} at 30", f"{table['needed'].iloc[0]:,.0f}")
