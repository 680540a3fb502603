"""The chapter's claims and the experiments that they rest on, in the order of the page."""

from . import encoders, labels, losses, ratios, sweep, trained

CLAIMS = (*trained.CLAIMS, *losses.CLAIMS, *labels.CLAIMS, *sweep.CLAIMS, *encoders.CLAIMS, *ratios.CLAIMS)
EXPERIMENTS = (
    *trained.EXPERIMENTS,
    *losses.EXPERIMENTS,
    *labels.EXPERIMENTS,
    *sweep.EXPERIMENTS,
    *encoders.EXPERIMENTS,
    *ratios.EXPERIMENTS,
)
