"""The chapter's claims and the experiments that they rest on, topic by topic."""

from ..experiments.codebooks import Channel, Clouds, Regressogram, Scalar, Windows
from ..experiments.information import Mine, Regimes, Variational
from ..experiments.labels import FisherRao, LawGrid, Path, Refits, Relabelled
from ..experiments.procrustes import Composite, Identities, Noise, Pooled, Spread, Unrelated
from ..experiments.sequences import Dilution, Strands, Trained, Walks
from ..experiments.sweep import Sweep
from ..experiments.training import Arms, Blur, Causality, Encoders, Judges
from . import codebooks, information, labels, procrustes, sequences, sweep, training

CLAIMS = (
    *procrustes.CLAIMS,  # GT-1, 2, 13
    *labels.CLAIMS,  # 3, 4
    *codebooks.CLAIMS,  # 5, 6, 8.r
    *training.CLAIMS,  # 7, 7b, 9
    *sweep.CLAIMS,  # 8
    *sequences.CLAIMS,  # 10, 12
    *information.CLAIMS,  # 11, 14
)
EXPERIMENTS = (
    *(Identities, Noise, Unrelated, Pooled, Spread, Composite),
    *(Relabelled, Refits, FisherRao, LawGrid, Path),
    *(Scalar, Clouds, Windows, Channel, Regressogram),
    *(Arms, Judges, Blur, Encoders, Causality, Sweep),
    *(Strands, Trained, Dilution, Walks),
    *(Variational, Mine, Regimes),
)
