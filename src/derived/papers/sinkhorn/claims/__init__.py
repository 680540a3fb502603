"""The chapter's claims and the experiments that they rest on, topic by topic."""

from ..experiments.approximation import BlockPlans, Blocks, ConditionalBlocks
from ..experiments.flows import Drift, HeatLimit, Particles
from ..experiments.gradients import Backward, Truncated
from ..experiments.plans import Increments, PlanGrid, Plans, RowPrograms, Temperature
from ..experiments.rates import AttentionTime, Contraction, RandomScores
from ..experiments.relations import Causal, Jumps, Ranks, Sinks, Stability
from ..experiments.trained import Arms, LearnedCouplings
from . import approximation, flows, gradients, plans, rates, relations, trained

CLAIMS = (
    *plans.PROBLEMS,  # SK-1, 2
    *rates.CONVERGENCE,  # 3, 5
    *plans.DUAL,  # 4
    *relations.STABILITY,  # 6
    *approximation.COUPLINGS,  # 7
    *trained.LEARNED,  # 8
    *approximation.CONDITIONAL,  # 9
    *relations.KINDS,  # 10
    *relations.CAUSAL,  # 11
    *relations.JUMPS,  # 12
    *gradients.CLAIMS,  # 13, 14
    *flows.GRADIENT,  # 15
    *flows.HEAT,  # 16
    *trained.CLASSIFIERS,  # 17, 18
    *plans.COLD,  # 19
    rates.CLOCK,  # 20
)
EXPERIMENTS = (
    *(Plans, RowPrograms, Contraction, RandomScores, Increments, Stability, Blocks, BlockPlans, LearnedCouplings),
    *(ConditionalBlocks, Sinks, Ranks, Causal, Jumps, Backward, Truncated, Drift, Particles, HeatLimit, Arms),
    *(Temperature, PlanGrid, AttentionTime),
)
