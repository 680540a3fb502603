"""The chapter's claims and the experiments that they rest on, topic by topic."""

from ..experiments.codes import Equidistant, GlobalPath, LeastCode, Picture, Recursion, SplitMerge
from ..experiments.deployment import AtOne, Injection, OffEcology, TwinDecoders
from ..experiments.evidence import Certification, Published
from ..experiments.imposed import Frozen, Imposed
from ..experiments.languages import Abroad, Complexity
from ..experiments.loss import Decomposition, Hellinger, Informed, Planted
from ..experiments.rescue import RecipePopulation, Rescue
from ..experiments.selection import Drift, Population, Price, Quasispecies, Recipes, Sampling
from . import codes, deployment, evidence, imposed, languages, loss, rescue, selection

CLAIMS = (
    *loss.CLAIMS,  # TE-1, 2, 6, 9
    *codes.CLAIMS,  # 3, 4, 5, 15
    *deployment.CLAIMS,  # 7, 8
    *evidence.CLAIMS,  # 12, 14
    *selection.CLAIMS,  # TE-10, 11, E3
    *imposed.CLAIMS,  # 13
    *languages.CLAIMS,  # E1, E2
    *rescue.CLAIMS,  # E4
)
EXPERIMENTS = (
    *(Decomposition, Planted, Informed, Hellinger, LeastCode, SplitMerge, Equidistant, GlobalPath, Recursion, Picture),
    *(Injection, AtOne, OffEcology, TwinDecoders, Certification, Published),
    *(Frozen, Imposed, Price, Sampling, Quasispecies, Recipes, Drift, Population),
    *(Abroad, Complexity, Rescue, RecipePopulation),
)
