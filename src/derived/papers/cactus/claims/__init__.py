"""The chapter's claims and the experiments that they rest on."""

from ..experiments.budget import Budget, ClosedForms, SecondOrder, TypicalProgram
from ..experiments.clock import SamplerTime
from ..experiments.position import Couplings, FixedBudget, FlatFamily, Limits, NearOptimal, RandomPairs
from ..experiments.texts import Blocks, MarkovPairs
from ..experiments.trained import PairTime, TrainedPair
from . import budget, clock, position, texts, trained

CLAIMS = (
    *position.EXACTNESS,  # CAC-1, 2
    *budget.TARGET,  # 3 to 5
    *position.EMITTED,  # 6 to 9
    *budget.CROSS_ENTROPY,  # 10
    position.TYPICAL,
    *texts.CLAIMS,  # 11
    *position.LIMITS,  # 16
    *trained.TRADE_OFF,  # 12
    *trained.RIVALS,  # 13
    *clock.CLAIMS,  # 14
    trained.SCORES,  # 15
)
EXPERIMENTS = (
    *(RandomPairs, Couplings, ClosedForms, SecondOrder, Budget, FlatFamily, NearOptimal, TypicalProgram, Blocks),
    *(MarkovPairs, FixedBudget, Limits, TrainedPair, PairTime, SamplerTime),
)
