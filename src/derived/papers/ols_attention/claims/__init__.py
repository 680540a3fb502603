"""The chapter's ledger: the claims of all topics in the order of their numbers, and the experiments they rest on."""

from derived.lab.claims import Claim, unseen

from ..experiments.capacity import ExponentialCapacity, PolynomialCapacity
from ..experiments.held_out import BatchError, Shift
from ..experiments.in_context import LearnedInContext, RandomTasks
from ..experiments.retrieval import OneStepRetrieval, ReadOutNoise
from ..experiments.softmax import Dial, DialCurves
from ..experiments.training import Courses, Reachability, Structure, TrainedEndPoint
from . import capacity, held_out, in_context, layer, retrieval, softmax, training

TOPICS = (layer, held_out, training, in_context, softmax, capacity, retrieval)
UNSEEN = unseen(
    "OLS-18",
    "The published curves of the paper's experiment come out again, number by number.",
    "neither curves nor tables of the paper could be seen; OLS-9 reruns its experiment as retold",
    source="paper",
    where="not visible",
    plain="The curves of the paper's own experiment come out again.",
    paper_value="not visible",
)


def _number(claim: Claim) -> tuple[int, str]:
    """The place of a claim in the ledger: OLS-15.f stands at (15, "f")."""
    number, _, letter = claim.id.removeprefix("OLS-").partition(".")
    return int(number), letter


CLAIMS = (*sorted((claim for topic in TOPICS for claim in topic.CLAIMS), key=_number), UNSEEN)
EXPERIMENTS = (
    *(BatchError, Shift, Reachability, Courses, TrainedEndPoint, Structure),
    *(RandomTasks, LearnedInContext, Dial, DialCurves),
    *(PolynomialCapacity, ExponentialCapacity, OneStepRetrieval, ReadOutNoise),
)
