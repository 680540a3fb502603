"""The chapter's claims and the experiments that they rest on, in the order of the page."""

from . import approximation, flows, plans, rates, real, relations, trained

CLAIMS = (
    *plans.CLAIMS,
    *rates.CLAIMS,
    *relations.CLAIMS,
    *approximation.CLAIMS,
    *flows.CLAIMS,
    *trained.CLAIMS,
    *real.CLAIMS,
)
EXPERIMENTS = (
    plans.PlanGrid,
    rates.Contraction,
    relations.Sinks,
    relations.Causal,
    relations.Jumps,
    relations.FixedScores,
    approximation.Blocks,
    flows.HeatLimit,
    trained.LearnedCouplings,
    trained.Arms,
    trained.EqualSeconds,
    real.AtomMaps,
)
