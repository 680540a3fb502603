"""The chapter's claims and the experiments that they rest on, topic by topic."""

from ..experiments.capacity import Capacity, Noise
from ..experiments.leaks import Leaks
from ..experiments.precision import Clip
from ..experiments.theorem import Edges, Keys, Logits
from ..experiments.trained import ChunkSizes, Documents, Layers, Recall, WarmStart
from . import capacity, leaks, precision, theorem, trained

CLAIMS = (
    *leaks.CLAIMS,  # IPT-4, 9.b
    *theorem.CLAIMS,  # 7, 8.a
    *capacity.CLAIMS,  # 8
    *trained.CLAIMS,  # 10 to 13, 15, 17
    *precision.CLAIMS,  # 16
)
EXPERIMENTS = (
    *(Leaks, Logits, Keys, Edges, Noise, Capacity, Clip),
    *(Recall, ChunkSizes, Layers, Documents, WarmStart),
)
