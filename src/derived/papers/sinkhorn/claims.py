"""The chapter's claims and the experiments that they rest on, in the order of the page."""

from . import approximation, plans, rates, real, relations, trained

CLAIMS = (
    *plans.CLAIMS,
    *rates.CLAIMS,
    *relations.CLAIMS,
    *approximation.CLAIMS,
    *trained.CLAIMS,
    *real.CLAIMS,
)
EXPERIMENTS = (
    *rates.EXPERIMENTS,
    *relations.EXPERIMENTS,
    *approximation.EXPERIMENTS,
    *trained.EXPERIMENTS,
    *real.EXPERIMENTS,
)
