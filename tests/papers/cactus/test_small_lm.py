"""The small language model: its cache, its padding, and the texts that the common loop writes with it."""

import torch

from derived.lab.rng import stream
from derived.papers.cactus.data import language
from derived.papers.cactus.data.small_lm import LanguageModel
from derived.papers.cactus.model import generate, rules, sampler

GRAMMAR = language.Grammar()
RAGGED = [[0, 11, 3], [0, 11, 2, 5, 4, 12], [0]]


def model(depth: int = 2, name: str = "a") -> LanguageModel:
    generator = stream(4, name)
    return LanguageModel(width=16, depth=depth, head=8, generator=generator, dtype=torch.float64).eval()


@torch.no_grad()
def test_laws_of_every_block_are_those_of_the_whole_text_without_a_cache():
    """A cache that missed a token of the draft would leave the text exact, and the draft worse; so compare rows."""
    draft, verifier, laws = model(1, "draft"), model(2, "verifier"), {"temperature": 0.6, "top_p": 0.7}
    texts, blocks = [list(prompt) for prompt in RAGGED], []
    options = {"rule": rules.Cactus(2.0), "m": 3, "max_new_tokens": 12, "generator": stream(11), **laws}
    generate.speculative_generate(draft, verifier, RAGGED, on_block=blocks.append, **options)
    for block in blocks:
        m = block.draft_laws.shape[1]
        for row, text in enumerate(block.texts.tolist()):
            kept = int(block.n_accepted[row])
            whole = torch.tensor([texts[text] + block.ids[row, :kept].tolist()])
            p, q = (generate.next_laws(one(whole).logits[0, -kept - 1 :], **laws) for one in (draft, verifier))
            places = min(kept + 1, m)
            assert torch.allclose(block.draft_laws[row, :places], p[:places], rtol=0, atol=1e-12)
            assert torch.allclose(block.verifier_laws[row, : kept + 1], q, rtol=0, atol=1e-12)
            texts[text] += block.ids[row, : block.counts[row]].tolist()
    assert {int(kept) for block in blocks for kept in block.n_accepted} >= {0, 3}


@torch.no_grad()
def test_plain_decoding_is_its_twin_without_a_cache():
    prompts, one, heard = GRAMMAR.sample(3, 4, stream(8, "texts")), model(), []
    ids = generate.generate_alone(one, prompts, max_new_tokens=8, generator=stream(2), top_p=0.8, on_token=heard.append)
    twin, generator = prompts, stream(2)
    for _ in range(8):
        law = generate.next_laws(one(twin).logits[:, -1], top_p=0.8)
        twin = torch.cat([twin, sampler.draw(law, sampler.uniform((3,), generator, twin.device)).unsqueeze(-1)], dim=1)
    assert torch.equal(ids, twin[:, 4:])
    assert torch.equal(ids, torch.stack(heard, dim=1))
