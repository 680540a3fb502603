"""The chapter's claims and the experiments that they rest on, topic by topic."""

from ..experiments.first import First
from ..experiments.sweep import Sweep
from ..experiments.training import Arms, Blur, Causality, Encoders
from . import first, sweep, training

CLAIMS = (
    *first.CLAIMS,
    *training.CLAIMS,  # GT-7, 7b, 9
    *sweep.CLAIMS,  # 8
)
EXPERIMENTS = (First, Arms, Blur, Encoders, Causality, Sweep)
