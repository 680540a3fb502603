"""The chapter's claims and the experiments that they rest on, topic by topic."""

from . import in_context, layer, memory, softmax, training

CLAIMS = (*layer.CLAIMS, *training.CLAIMS, *in_context.CLAIMS, *softmax.CLAIMS, *memory.CLAIMS)
EXPERIMENTS = (
    *layer.EXPERIMENTS,
    *training.EXPERIMENTS,
    *in_context.EXPERIMENTS,
    *softmax.EXPERIMENTS,
    *memory.EXPERIMENTS,
)
