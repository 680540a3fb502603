"""The loaded models are the trained ones: they fill gaps and map atoms as published, and fail on shuffled input.

A file read into the wrong places still gives plausible states: only what training taught tells (``strict=True`` apart).
"""

import json

import pytest
import torch
from here import needs
from transformers import BertConfig, BertForMaskedLM, Gemma3ForCausalLM, GPT2Config, GPT2LMHeadModel

from derived.lab.real import gemma, models, texts
from derived.lab.rng import stream

TRASTUZUMAB = (  # heavy chain, variable domain
    "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYCSRWGGDGFYAMDY"
    "WGQGTLVTVSS"
)
LIGHT = "DIQMTQSPSSLSASVGDRVTITCRASQDVNTAVAWYQQKPGKAPKLLIYSASFLYSGVPSRFSGSRSGTDFTLTISSLQPEDFATYYCQQHYTTPPTFGQGTKVEIK"
THIOETHER = "CC(C)S.CN(C)C=O.Fc1ncccc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F"
MAPPED = "[CH3:1][CH:2]([CH3:3])[SH:4].CN(C)C=O.F[c:5]1[n:6][cH:7][cH:8][cH:9][c:10]1[F:11].O=C([O-])[O-].[K+].[K+]"


def shuffled(text: str) -> str:
    order = torch.randperm(len(text), generator=stream(0, "shuffle"))
    return "".join(text[index] for index in order.tolist())


@torch.no_grad()
def filled(one: models.Pretrained, text: str, mask: int) -> float:
    """The share of tokens hidden by ``mask``, one at a time, that the model names."""
    tokens = one.tokens(text)
    places = torch.arange(1, tokens.shape[1] - 1)
    copies = tokens.repeat(len(places), 1)
    copies[torch.arange(len(places)), places] = mask
    logits = one.model(copies).logits[torch.arange(len(places)), places]
    return (logits.argmax(dim=-1) == tokens[0, places]).double().mean().item()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("sapiens-heavy", TRASTUZUMAB, marks=needs("sapiens")),
        pytest.param("sapiens-light", LIGHT, marks=needs("sapiens")),
    ],
)
def test_an_antibody_is_filled_in_and_its_shuffle_is_not(name, text):
    one = models.load(name)
    mask = one.model.config.vocab_size - 1
    assert filled(one, text, mask) >= 0.75
    assert filled(one, shuffled(text), mask) <= 0.25


@needs("rxnmapper")
def test_a_reaction_is_filled_in_and_not_by_the_untrained_model():
    one = models.load("rxnmapper")
    mask = one.tokens("[MASK]")[0, 1]
    assert filled(one, THIOETHER, mask) >= 0.9
    assert filled(models.fresh(one, stream(0, "fresh")), THIOETHER, mask) <= 0.25


@needs("rxnmapper")
def test_the_head_of_rxnmapper_maps_the_atoms_of_its_own_first_test():
    one = models.load("rxnmapper")
    words = models.SMILES.findall(THIOETHER)
    atoms = [place for place, word in enumerate(words, 1) if word[0].isalpha() or word[0] == "["]
    arrow = 1 + words.index(">>")
    with torch.no_grad():
        head = one.model(one.tokens(THIOETHER), output_attentions=True).attentions[10][0, 5]
    before = [place for place in atoms if place < arrow]
    got = [before[head[place, before].argmax()] for place in atoms if place > arrow]
    numbers = [word for word in models.SMILES.findall(MAPPED) if word[0].isalpha() or word[0] == "["]
    wanted = {
        int(word.rstrip("]").split(":")[1]): place for word, place in zip(numbers, before, strict=True) if ":" in word
    }
    assert got == [wanted[number] for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)]


@needs("minilm")
def test_sentences_that_mean_the_same_are_near():
    one = models.load("minilm")
    said = ["A person has lunch", "A man is eating food.", "A man is riding a horse.", "A cheetah chases its prey."]
    with torch.no_grad():
        states = torch.stack([one.model(one.tokens(each)).last_hidden_state[0].mean(dim=0) for each in said])
    cosines = torch.cosine_similarity(states[:1], states[1:])
    assert cosines[0] == pytest.approx(0.52, abs=0.05)
    assert cosines[1:].max() < 0.25


def test_gemma_has_the_published_size():
    """268,098,176 numbers; asked where its weights are not here, too."""
    with torch.device("meta"):
        model = Gemma3ForCausalLM(gemma.CONFIG)
    assert sum(each.numel() for each in model.parameters()) == 268_098_176


@needs("gemma", "austen")
def test_gemma_reads_a_novel_and_not_its_shuffle():
    one = models.load("gemma")
    tokens = one.tokens(texts.austen()["Persuasion"][:4000])[:, :512]

    def nats(tokens: torch.Tensor) -> float:
        with torch.no_grad():
            logits = one.model(tokens).logits[0, :-1]
        return torch.nn.functional.cross_entropy(logits, tokens[0, 1:]).item()

    assert nats(tokens) == pytest.approx(3.33, abs=0.15)
    assert nats(tokens[:, torch.randperm(tokens.shape[1], generator=stream(0, "shuffle"))]) > 7


def test_a_file_that_does_not_fit_is_refused():
    model = BertForMaskedLM(BertConfig(vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1))
    states = model.state_dict()
    with pytest.raises(RuntimeError, match="Missing key"):
        models._filled(model, {name: states[name] for name in list(states)[1:]})
    with pytest.raises(KeyError):
        models._filled(model, states, ["pooler"])


@pytest.fixture
def folder(tmp_path):
    """A Hugging Face folder of one's own with a tokenizer of five words."""
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "yes", "no"]))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    return tmp_path


@pytest.mark.parametrize(
    "model",
    [
        BertForMaskedLM(BertConfig(vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)),
        GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=4, n_layer=1, n_head=1)),
    ],
)
def test_a_folder_of_ones_own_stands_in_the_same_place(folder, model):
    model.save_pretrained(folder)
    one = models.load(folder)
    assert type(one.model) is type(model)
    assert not one.model.training
    assert one.tokens("yes no").tolist() == [[2, 5, 6, 3]]
    for name, tensor in model.state_dict().items():
        assert torch.equal(one.model.state_dict()[name], tensor)


def test_pickled_weights_of_ones_own_are_refused(folder):
    config = BertConfig(vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)
    model = BertForMaskedLM(config)
    config.architectures = ["BertForMaskedLM"]
    config.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(OSError, match="safetensors"):
        models.load(folder)


def test_what_is_neither_model_nor_folder_is_told():
    with pytest.raises(ValueError, match="no model or folder is called nosuch; there is rxnmapper, "):
        models.load("nosuch")
