"""Models in the Marian format: transformers computes and translates with them as we do."""

import json

import pytest
import torch
from safetensors.torch import load_file

import marian
import systems
from bleuprint.config.corpus import SentencePiece, Units
from bleuprint.config.system import Decode, LengthPenalty
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD
from bleuprint.decoding.translate import create_engine
from bleuprint.model.marian_config import check_expressible
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.serving.export_marian import write_marian
from bleuprint.serving.import_marian import import_marian
from bleuprint.text.tokenizers import Tokenize
from prepared import prepare

# In the exported model a sentence has at most as many tokens as `DECODE` allows, EOS and the token
# from which decoding starts included.
MAX_POSITIONS = 64
DECODE = Decode(
    beam=4,
    length_penalty=LengthPenalty("length", 1.0),
    max_len_a=0,
    max_len_b=MAX_POSITIONS - 2,
    allow_unk=False,
)


@pytest.fixture(scope="module", params=[True, False], ids=["joint", "separate"])
def corpus(request, tmp_path_factory):
    """Prepare a corpus with pieces of SentencePiece: one vocabulary, or one for each language."""
    size = 90 if request.param else 60
    pieces = SentencePiece(vocab_size=size, joint=request.param)
    return prepare(
        tmp_path_factory.mktemp("corpus"),
        {"train": marian.PAIRS},
        units=Units(sentencepiece=pieces),
        tokenize=Tokenize(name="none"),
    ).binary


def random_model(corpus, **settings):
    """Make a model for a corpus with random weights."""
    torch.manual_seed(3)
    source_size = len(corpus.segmentation(corpus.source).vocabulary)
    target_size = len(corpus.segmentation(corpus.target).vocabulary)
    settings = {"tie_embeddings": "all" if corpus.joint else "decoder", **settings}
    shape = systems.model(max_positions=MAX_POSITIONS, **settings)
    model = Transformer(shape, source_size, target_size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Biases and norms start as 0 and 1; the noise lets an export that ignores them fail.
            parameter.mul_(1.5).add_(torch.randn_like(parameter), alpha=0.1)
    return model


def marian_ids(corpus, language, tokenizer):
    """Return for each of our token ids of a language the id that transformers has for it."""
    ids = []
    for our_id, token in enumerate(corpus.segmentation(language).vocabulary.tokens):
        is_target = language == corpus.target
        known = tokenizer.target_encoder if is_target and not corpus.joint else tokenizer.encoder
        ids.append(known["<pad>"] if our_id in (PAD, BOS) else known[token])
    return torch.tensor(ids)


SHAPES = [
    pytest.param({}, id="default"),
    pytest.param({"activation": "silu", "output_bias": True}, id="silu, output bias"),
    pytest.param({"activation": "gelu", "bias": False}, id="gelu, no biases"),
    pytest.param(
        {"encoder_layers": 3, "decoder_layers": 2, "scale_embeddings": False},
        id="three and two layers, unscaled embeddings",
    ),
    # The square root of this d_k is exact.
    pytest.param(
        {"scale_attention": False, "heads": 2, "d_k": 16, "d_v": 16}, id="unscaled attention"
    ),
    pytest.param({"tie_embeddings": "none"}, id="nothing tied"),
    pytest.param({"tie_embeddings": "decoder", "d_model": 64, "d_k": 16, "d_v": 16}, id="64"),
]


@pytest.mark.parametrize("settings", SHAPES)
def test_transformers_gives_the_logits_of_an_exported_model(tmp_path, corpus, settings):
    model = random_model(corpus, **settings)
    write_marian(model, corpus, DECODE, tmp_path)
    exported, tokenizer = marian.load_marian(tmp_path)
    # In double precision, so that only the architecture counts.
    model.double()
    exported.double()
    source_ids = marian_ids(corpus, corpus.source, tokenizer)
    target_ids = marian_ids(corpus, corpus.target, tokenizer)
    source = torch.tensor([[5, 6, 7, 8, EOS], [9, 4, EOS, PAD, PAD]])
    target = torch.tensor([[BOS, 6, 7, 5], [BOS, 9, 10, 11]])

    with torch.no_grad():
        logits = model(source, target)
        exported_logits = exported(
            input_ids=source_ids[source],
            attention_mask=(source != PAD).long(),
            decoder_input_ids=target_ids[target],
        ).logits

    # PAD and BOS share an id in the exported model. No output contains them.
    found = exported_logits[:, :, target_ids]
    assert torch.allclose(found[..., EOS:], logits[..., EOS:], rtol=0, atol=1e-5)


def test_transformers_translates_text_as_we_do(tmp_path, corpus):
    """It uses the search settings in the exported folder."""
    model = random_model(corpus, output_bias=True, tie_embeddings="decoder")
    with torch.no_grad():
        model.projection.bias[EOS] = 6.0  # Some outputs end before their maximum length.
    write_marian(model, corpus, DECODE, tmp_path)
    exported, tokenizer = marian.load_marian(tmp_path)
    lines = [*marian.SOURCES[:12], "ba 中 x"]
    sources = [corpus.segmentation(corpus.source).encode([line]).tolist() for line in lines]
    lengths = torch.tensor([len(source) for source in sources]).numpy()

    outputs = create_engine(model, DECODE).search(sources, lengths)
    batch = tokenizer(lines, return_tensors="pt", padding=True)
    exported_outputs = exported.generate(**batch)

    compared = set()
    for (output,), row in zip(outputs, exported_outputs, strict=True):
        # At the maximum length, transformers counts EOS as certain, and we do not.
        is_cut = int((row != tokenizer.pad_token_id).sum()) >= MAX_POSITIONS - 1
        if not is_cut:
            text = corpus.text(corpus.target, output.tokens)
            assert text == tokenizer.decode(row, skip_special_tokens=True)
            compared.add(text)
    assert len(compared) > 1  # Not the same output for all sources.


@pytest.mark.parametrize("settings", SHAPES)
def test_an_exported_model_can_be_imported_again(tmp_path, corpus, settings):
    """It has the same weights, except that all layers and the output have biases."""
    model = random_model(corpus, **settings)
    write_marian(model, corpus, DECODE, tmp_path)

    import_marian(tmp_path, tmp_path / "imported")

    imported = marian.Imported(tmp_path / "imported")
    for side, language in (("source", corpus.source), ("target", corpus.target)):
        tokens = corpus.segmentation(language).vocabulary.tokens
        assert imported.segmentation(side).vocabulary.tokens == tokens
    source = torch.tensor([[5, 6, 7, 8, EOS]])
    target = torch.tensor([[BOS, 6, 7, 5]])
    logits = imported.model().double()(source, target)[..., EOS:]
    assert torch.allclose(logits, model.double()(source, target)[..., EOS:], rtol=0, atol=1e-5)


def test_an_imported_model_is_exported_with_the_same_tensors_and_vocabulary(tmp_path):
    """The imported model becomes one of a corpus, as if it had been fine-tuned on it."""
    original_folder = tmp_path / "marian"
    marian.write_marian(original_folder)
    imported_folder = tmp_path / "imported"
    import_marian(original_folder, imported_folder)
    pieces = SentencePiece(folder=str(imported_folder))
    corpus = prepare(
        tmp_path / "corpus",
        {"train": marian.PAIRS},
        units=Units(sentencepiece=pieces),
        tokenize=Tokenize(name="none"),
    ).binary
    exported_folder = tmp_path / "exported"
    exported_folder.mkdir()

    write_marian(marian.Imported(imported_folder).model(), corpus, DECODE, exported_folder)

    original = load_file(original_folder / "model.safetensors")
    exported = load_file(exported_folder / "model.safetensors")
    assert original.keys() == exported.keys()
    for name, tensor in original.items():
        assert torch.equal(exported[name], tensor), name
    for name in ("vocab.json",):
        original_ids = json.loads((original_folder / name).read_text())
        assert json.loads((exported_folder / name).read_text()) == original_ids
    for name in ("source.spm", "target.spm"):
        assert (exported_folder / name).read_bytes() == (original_folder / name).read_bytes()


@pytest.mark.parametrize(
    "changes",
    [
        {"norm": "pre"},
        {"normalization": "rms"},
        {"positional_encoding": "learned"},
        {"positional_encoding": "rotary"},
        {"activation": "swiglu"},
        {"d_k": 4},
        {"d_v": 16},
    ],
    ids=lambda changes: " ".join(f"{key} {value}" for key, value in changes.items()),
)
def test_a_model_that_the_format_cannot_describe_is_refused(changes):
    """The message names the setting and its value."""
    ((name, value),) = changes.items()

    with pytest.raises(UserError, match=rf"cannot describe model\.{name} {value}\. It supports: "):
        check_expressible(systems.model(**changes))


def test_a_vocabulary_with_a_special_token_of_marian_is_refused(tmp_path, corpus):
    """A piece of the text is spelled <pad>."""
    vocabulary = corpus.segmentation(corpus.source).vocabulary
    other = BinaryCorpus(corpus.folder)
    other_vocabulary = other.segmentation(other.source).vocabulary
    other_vocabulary.tokens[-1] = "<pad>"
    assert vocabulary.tokens != other_vocabulary.tokens

    with pytest.raises(UserError, match="the token <pad>"):
        write_marian(random_model(other), other, DECODE, tmp_path)
