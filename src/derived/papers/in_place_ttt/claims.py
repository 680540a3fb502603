"""The chapter's claims and the experiments that they rest on, in order."""

from . import documents, keys, layer, recall

CLAIMS = (*layer.CLAIMS, *keys.CLAIMS, *recall.CLAIMS, *documents.CLAIMS)
EXPERIMENTS = (recall.MemoryOff, recall.Recall, documents.Documents, documents.CatchUp)
EXPERIMENTS += (documents.Tuned, documents.WarmStart, documents.Novels, keys.TrainedKeys, keys.GatedKeys)
