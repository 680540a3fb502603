"""The chapter's claims and the experiments that they rest on, topic by topic."""

from ..experiments.capacity import Capacity, Noise
from ..experiments.leaks import Leaks
from ..experiments.precision import Clip
from ..experiments.theorem import Edges, Keys, Logits
from . import capacity, leaks, precision, theorem

CLAIMS = (
    *leaks.CLAIMS,  # IPT-4, 9.b
    *theorem.CLAIMS,  # 7, 8.a
    *capacity.CLAIMS,  # 8
    *precision.CLAIMS,  # 16
)
EXPERIMENTS = (Leaks, Logits, Keys, Edges, Noise, Capacity, Clip)
