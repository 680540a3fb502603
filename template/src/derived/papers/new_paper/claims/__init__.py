"""The chapter's claims and the experiments that they rest on, topic by topic."""

from ..experiments.first import First
from . import first

CLAIMS = first.CLAIMS
EXPERIMENTS = (First,)
