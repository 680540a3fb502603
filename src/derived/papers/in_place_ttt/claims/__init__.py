"""The chapter's claims and the experiments that they rest on, topic by topic."""

from ..experiments.capacity import Capacity, Noise
from ..experiments.clock import LayerTime
from ..experiments.leaks import Leaks
from ..experiments.precision import Clip
from ..experiments.texts import Needles, SourceBytes
from ..experiments.theorem import Edges, Keys, Logits
from ..experiments.trained import ChunkSizes, Documents, Layers, Recall, WarmStart
from ..experiments.writes import Forms, Start
from . import capacity, clock, leaks, precision, texts, theorem, trained, writes

CLAIMS = (
    *writes.CLAIMS,  # IPT-1, 2, 3, 5, 6, 9.a
    *leaks.CLAIMS,  # 4, 9.b
    *theorem.CLAIMS,  # 7, 8.a
    *capacity.CLAIMS,  # 8
    *trained.CLAIMS,  # 10 to 13, 15, 17
    *texts.CLAIMS,  # 11.b, 13.d, 13.e, 15
    *clock.CLAIMS,  # 14
    *precision.CLAIMS,  # 16
)
EXPERIMENTS = (
    *(Forms, Start, Leaks, Logits, Keys, Edges, Noise, Capacity, Clip),
    *(Recall, ChunkSizes, Layers, Documents, WarmStart, LayerTime),
    *(Needles, SourceBytes),
)
