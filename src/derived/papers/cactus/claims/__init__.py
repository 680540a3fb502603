"""The chapter's claims and the experiments that they rest on."""

from ..experiments.budget import Budget, ClosedForms, SecondOrder, TypicalProgram
from ..experiments.clock import SamplerTime
from ..experiments.position import Couplings, FlatFamily, Limits, NearOptimal, RandomPairs
from ..experiments.texts import Blocks
from ..experiments.trained import PairTime, TrainedPair
from . import position, trained

CLAIMS = (*position.ONE_POSITION, *trained.TRAINED, *position.CLOCK)
EXPERIMENTS = (
    *(RandomPairs, Couplings, ClosedForms, SecondOrder, Budget, FlatFamily, NearOptimal, TypicalProgram, Blocks),
    *(Limits, TrainedPair, PairTime, SamplerTime),
)
