"""The chapter's claims and the experiments that they rest on, topic by topic."""

from ..experiments.imposed import Frozen, Imposed
from ..experiments.languages import Abroad, Complexity
from ..experiments.rescue import Rescue
from ..experiments.selection import Drift, Population, Price, Quasispecies, Recipes, Sampling
from . import imposed, languages, rescue, selection

CLAIMS = (
    *selection.CLAIMS,  # TE-10, 11, E3
    *imposed.CLAIMS,  # 13
    *languages.CLAIMS,  # E1, E2
    *rescue.CLAIMS,  # E4
)
EXPERIMENTS = (
    *(Frozen, Imposed, Price, Sampling, Quasispecies, Recipes, Drift, Population),
    *(Abroad, Complexity, Rescue),
)
