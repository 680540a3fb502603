"""The chapter's ledger: evidence, criterion and expected verdicts of every claim, written before the first run."""

from ..experiments.capacity import ExponentialCapacity, PolynomialCapacity
from ..experiments.held_out import BatchError, Shift
from ..experiments.in_context import LearnedInContext, RandomTasks
from ..experiments.layer import Degenerate, Identities
from ..experiments.retrieval import OneStepRetrieval, PublishedConstants, ReadOutNoise, RetrievalBound, SoftmaxStep
from ..experiments.softmax import Dial, DialCurves
from ..experiments.training import Courses, Reachability, Structure, TrainedEndPoint
from .layer import REGRESSION_CLAIMS, UNSEEN
from .retrieval import MEMORY_CLAIMS

CLAIMS = (*REGRESSION_CLAIMS, *MEMORY_CLAIMS, UNSEEN)
EXPERIMENTS = (
    *(Identities, Degenerate, BatchError, Shift, Reachability, Courses, TrainedEndPoint, Structure),
    *(RandomTasks, LearnedInContext, Dial, DialCurves),
    *(SoftmaxStep, PolynomialCapacity, ExponentialCapacity, OneStepRetrieval),
    *(RetrievalBound, PublishedConstants, ReadOutNoise),
)
