"""Imported Marian models compute and translate as the library transformers does."""

import io
import json
import pickle
import random
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

import marian
from bleuprint.config.system import Decode, Dropout, LengthPenalty, Model
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD, UNK
from bleuprint.decoding.translate import create_engine
from bleuprint.model.marian_weights import read_tensors
from bleuprint.runtime.errors import UserError
from bleuprint.serving.download_marian import download_marian, is_name
from bleuprint.serving.import_marian import import_marian
from downloads import downloads_in, read_lock

# Shapes of random models: what differs from the small model of `write_marian`.
SHAPES = [
    pytest.param({}, id="small, as OPUS-MT"),
    pytest.param(
        {"encoder_layers": 1, "decoder_layers": 3, "d_model": 64}, id="one and three layers, 64"
    ),
    pytest.param(
        {"d_model": 10, "encoder_attention_heads": 1, "decoder_attention_heads": 1},
        id="ten dimensions, one head",
    ),
    pytest.param({"activation_function": "relu"}, id="relu"),
    pytest.param({"activation_function": "gelu"}, id="gelu"),
    pytest.param({"scale_embedding": False}, id="unscaled embeddings"),
    pytest.param({"separate": True}, id="two vocabularies"),
    pytest.param(
        {"separate": True, "tie_word_embeddings": False}, id="two vocabularies, nothing tied"
    ),
]
OPUS_MT_SIZE = pytest.param(
    {
        "d_model": 512,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "encoder_attention_heads": 8,
        "decoder_attention_heads": 8,
        "encoder_ffn_dim": 2048,
        "decoder_ffn_dim": 2048,
        "max_position_embeddings": 512,
    },
    id="the size of OPUS-MT",
)


def import_folder(folder):
    """Import a Marian model from a folder, and return the result."""
    output = folder.with_name(f"{folder.name}-imported")
    import_marian(folder, output)
    return marian.Imported(output)


def target_vocabulary_path(folder):
    """Return the file of the target vocabulary of a Marian model."""
    separate = folder / "target_vocab.json"
    return separate if separate.exists() else folder / "vocab.json"


def random_ids(rng, vocabulary_size, length):
    """Return the ids of a random sentence of our vocabulary, with EOS and without PAD and BOS."""
    words = [rng.randrange(UNK, vocabulary_size) for _ in range(length - 1)]
    return [*words, EOS]


@pytest.mark.parametrize("changes", [*SHAPES, OPUS_MT_SIZE])
def test_an_imported_model_gives_the_logits_of_transformers(tmp_path, changes):
    """Three sentences of different lengths are in one batch, so that two have padding."""
    folder = tmp_path / "marian"
    reference = marian.write_marian(folder, **changes)
    imported = import_folder(folder)
    model = imported.model()
    source_ids = imported.marian_ids("source", folder / "vocab.json")
    target_ids = imported.marian_ids("target", target_vocabulary_path(folder))
    rng = random.Random(1)
    sources = [random_ids(rng, len(source_ids), length) for length in (9, 5, 2)]
    targets = [[BOS, *random_ids(rng, len(target_ids), 6)] for _ in sources]
    source = torch.tensor([ids + [PAD] * (9 - len(ids)) for ids in sources])
    target = torch.tensor(targets)

    with torch.no_grad():
        logits = model(source, target)
        expected = reference(
            input_ids=source_ids[source],
            attention_mask=(source != PAD).long(),
            decoder_input_ids=target_ids[target],
        ).logits

    assert expected.std() > 0.5  # The logits differ, so that a wrong order of tokens is found.
    assert torch.allclose(logits, expected[:, :, target_ids], rtol=0, atol=1e-5)


@pytest.mark.parametrize("changes", SHAPES)
@pytest.mark.parametrize("beam", [1, 4])
def test_an_imported_model_translates_as_transformers_does(tmp_path, changes, beam):
    """Both search for translations of 40 sentences with the same settings.

    The probability of padding, which no output may contain, is not part of the scores: OPUS-MT sets
    `renormalize_logits`, too. At the maximum length, transformers counts EOS as certain, and we do
    not; so outputs of a beam that it cut there are not compared.
    """
    folder = tmp_path / "marian"
    marian.write_marian(folder, gain=3.0, **changes)
    reference, tokenizer = marian.load_marian(folder)
    imported = import_folder(folder)
    max_tokens = 50
    decode = Decode(
        beam=beam, length_penalty=LengthPenalty("length", 1.0), max_len_a=0, max_len_b=max_tokens
    )
    lines = marian.SOURCES[:40]
    segmentation = imported.segmentation("source")
    sources = [segmentation.encode([line]).tolist() for line in lines]
    pad_id = tokenizer.convert_tokens_to_ids("<pad>")
    batch = tokenizer(lines, return_tensors="pt", padding=True)

    expected = reference.generate(
        **batch,
        num_beams=beam,
        length_penalty=1.0,
        early_stopping=True,
        # The length includes the token from which decoding starts, and EOS.
        max_length=max_tokens + 2,
        bad_words_ids=[[pad_id]],
        renormalize_logits=True,
        do_sample=False,
    )
    lengths = torch.tensor([len(source) for source in sources]).numpy()
    outputs = create_engine(imported.model(), decode).search(sources, lengths)

    target_ids = imported.marian_ids("target", target_vocabulary_path(folder))
    compared = set()
    for (output,), expected_row in zip(outputs, expected.tolist(), strict=True):
        expected_tokens = _tokens_of(expected_row, pad_id)
        if beam == 1 or len(expected_tokens) < max_tokens:
            assert target_ids[output.tokens].tolist() == expected_tokens
            compared.add(tuple(expected_tokens))
    assert len(compared) > 1  # Not the same output for all sources.


def _tokens_of(row, pad_id):
    """Return the tokens of an output of transformers, without padding and EOS."""
    return [token for token in row if token not in (pad_id, 0)]


@pytest.mark.parametrize("separate", [False, True], ids=["one vocabulary", "two vocabularies"])
def test_text_gets_the_tokens_that_transformers_gives_it(tmp_path, separate):
    """Source text has words that only the target has, unknown characters, and odd spaces."""
    folder = tmp_path / "marian"
    marian.write_marian(folder, separate=separate)
    _, tokenizer = marian.load_marian(folder)
    imported = import_folder(folder)
    lines = [*marian.SOURCES[:50], *marian.TARGETS[:50], "ba 中文 x", " ba  be ", "BA 中", "ﬁ ½"]

    source_ids = imported.marian_ids("source", folder / "vocab.json")
    found = [source_ids[imported.segmentation("source").encode([line]).tolist()] for line in lines]

    expected = tokenizer(lines)["input_ids"]
    assert [ids.tolist() for ids in found] == expected


def test_translations_become_the_text_that_transformers_makes_of_them(tmp_path):
    folder = tmp_path / "marian"
    marian.write_marian(folder)
    _, tokenizer = marian.load_marian(folder)
    imported = import_folder(folder)
    segmentation = imported.segmentation("target")
    target_ids = imported.marian_ids("target", folder / "vocab.json")

    for line in marian.TARGETS[:50]:
        ids = segmentation.encode([line]).tolist()
        text = " ".join(segmentation.decode(ids))

        assert text == tokenizer.decode(target_ids[ids].tolist(), skip_special_tokens=True) == line


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_weights_are_read_from_a_pickled_file(tmp_path, dtype):
    """pytorch_model.bin, the file of older models, also contains tied and computed tensors."""
    folder = tmp_path / "marian"
    reference = marian.write_marian(folder)
    from_safetensors = import_folder(folder).model()
    (folder / "model.safetensors").unlink()
    tensors = {name: tensor.to(dtype) for name, tensor in reference.state_dict().items()}
    assert "model.encoder.embed_positions.weight" in tensors
    torch.save(tensors, folder / "pytorch_model.bin")

    import_marian(folder, tmp_path / "other")

    model = marian.Imported(tmp_path / "other").model()
    for name, parameter in from_safetensors.named_parameters():
        expected = parameter.to(dtype).float()
        assert torch.equal(model.get_parameter(name), expected), name


class _Command:
    """An object whose unpickling runs a command."""

    def __reduce__(self):
        return subprocess.run, ([sys.executable, "-c", "open('ran', 'w')"],)


def test_code_in_a_pickled_file_is_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "marian"
    marian.write_marian(folder)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"x": _Command()}))

    with pytest.raises(UserError, match=r"pytorch_model\.bin is damaged"):
        import_marian(folder, tmp_path / "out")

    assert not (tmp_path / "ran").exists()


def damaged_pickles():
    """Return pickled tensors with random wrong bytes, in the older of the two forms of torch."""
    content = io.BytesIO()
    tensors = {"x": torch.ones(2, 2), "y": torch.zeros(3)}
    torch.save(tensors, content, _use_new_zipfile_serialization=False)
    rng = random.Random(1)
    for _ in range(100):
        damaged = bytearray(content.getvalue())
        for _ in range(5):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        yield bytes(damaged)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_weights_that_torch_cannot_read_are_damaged(tmp_path):
    """The errors of torch have many classes, and some of them advise to run foreign code."""
    path = tmp_path / "pytorch_model.bin"
    refused_count = 0
    for content in [b"", b"<html>", *damaged_pickles()]:
        path.write_bytes(content)
        try:
            read_tensors(path)
        except UserError as error:
            assert str(error).startswith(f"{path} is damaged: it")
            assert str(error).endswith(". Get an intact copy of its folder")
            refused_count += 1
    assert refused_count > 50


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
def test_a_placeholder_of_git_lfs_is_recognized(tmp_path, name):
    """Git without the extension LFS writes it in place of a large file of Hugging Face."""
    path = tmp_path / name
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")

    with pytest.raises(UserError, match=rf"^{path}: a placeholder of Git LFS.* lfs pull$"):
        read_tensors(path)


def test_the_settings_are_those_of_config_json(tmp_path):
    folder = tmp_path / "marian"
    marian.write_marian(folder, dropout=0.25, attention_dropout=0.125)

    settings = import_marian(folder, tmp_path / "out")

    assert settings == Model(
        encoder_layers=2,
        decoder_layers=2,
        d_model=32,
        d_ff=48,
        heads=4,
        activation="silu",
        output_bias=True,
        max_positions=64,
        dropout=Dropout(embedding=0.25, residual=0.25, attention=0.125),
    )


def edit_json(path, **changes):
    """Change values in a JSON file; None removes a value."""
    content = json.loads(path.read_text())
    content.update(changes)
    content = {key: value for key, value in content.items() if value is not None}
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"model_type": "bart"}, "model_type is bart", id="BART"),
        pytest.param({"model_type": None}, "field model_type is missing", id="no type"),
        pytest.param({"normalize_before": True}, "normalize_before is True", id="pre-norm"),
        pytest.param(
            {"activation_function": "gelu_new"}, "activation_function is gelu_new", id="activation"
        ),
        pytest.param({"decoder_ffn_dim": 64}, "decoder_ffn_dim is 64", id="two inner sizes"),
        pytest.param({"decoder_attention_heads": 2}, "decoder_attention_heads is 2", id="heads"),
        pytest.param({"decoder_start_token_id": 0}, "decoder_start_token_id is 0", id="start"),
        pytest.param({"pad_token_id": 3, "decoder_start_token_id": 3}, "<pad> has", id="padding"),
        pytest.param({"d_model": "x"}, "field d_model", id="letters for a number"),
        pytest.param({"d_model": 10**12}, "field d_model", id="a number too large"),
        pytest.param({"encoder_attention_heads": 5, "decoder_attention_heads": 5}, "heads", id="5"),
        pytest.param({"vocab_size": 99, "decoder_vocab_size": 99}, "has 99", id="vocabulary size"),
        pytest.param({"d_model": 16}, r"has the shape \[32, 32\]", id="other size of layers"),
        pytest.param({"encoder_layers": 3}, r"layers\.2\.\S+ is missing", id="a layer too many"),
        pytest.param({"encoder_layers": 1}, r"layers\.1\.\S+ does not belong", id="one too few"),
    ],
)
def test_a_config_that_describes_another_model_is_refused_in_one_line(tmp_path, changes, message):
    """config.json gets these values; the weights are those of the small model."""
    folder = tmp_path / "marian"
    marian.write_marian(folder)
    edit_json(folder / "config.json", **changes)

    with pytest.raises(UserError, match=rf"^[^\n]*{message}[^\n]*$"):
        import_marian(folder, tmp_path / "out")

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name", ["config.json", "vocab.json", "source.spm", "target.spm", "model.safetensors"]
)
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_missing_or_damaged_file_is_named_in_one_line(tmp_path, name, damage):
    folder = tmp_path / "marian"
    marian.write_marian(folder)
    path = folder / name
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:100])

    with pytest.raises(UserError, match=rf"^[^\n]*{name}[^\n]*$"):
        import_marian(folder, tmp_path / "out")

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        pytest.param({"</s>": None}, "field </s> is missing", id="no end of sentence"),
        pytest.param({"<unk>": 0}, "do not have the ids 0 to", id="an id twice"),
        pytest.param({"<unk>": "1"}, "not a whole number", id="letters"),
        pytest.param({"a\nb": 9}, "contains a line break", id="line break"),
    ],
)
def test_a_damaged_vocabulary_is_refused_in_one_line(tmp_path, ids, message):
    folder = tmp_path / "marian"
    marian.write_marian(folder)
    edit_json(folder / "vocab.json", **ids)

    with pytest.raises(UserError, match=rf"^[^\n]*vocab\.json[^\n]*{message}[^\n]*$"):
        import_marian(folder, tmp_path / "out")


def test_a_model_with_several_target_languages_is_refused(tmp_path):
    """Such a model expects a tag before each sentence, and its tags are no pieces of source.spm."""
    folder = tmp_path / "marian"
    marian.write_marian(folder)
    path = folder / "vocab.json"
    ids = json.loads(path.read_text())
    first, second, *_ = [token for token, token_id in ids.items() if token_id > 1]
    ids[">>fra<<"] = ids.pop(first)
    ids[">>pt_br<<"] = ids.pop(second)
    path.write_text(json.dumps(ids))

    expected = (
        r"vocab\.json: the model has 2 target languages, with tags such as >>fra<<, >>pt_br<<"
    )
    with pytest.raises(UserError, match=expected):
        import_marian(folder, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("model.encoder.embed_positions.weight", "sinusoids", id="positions"),
        pytest.param("model.encoder.layernorm_embedding.weight", "does not belong", id="norm"),
    ],
)
def test_tensors_of_other_architectures_are_refused(tmp_path, name, message):
    folder = tmp_path / "marian"
    marian.write_marian(folder)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors[name] = torch.randn(64, 32)
    save_file(tensors, path)

    with pytest.raises(UserError, match=rf"^[^\n]*{name}[^\n]*{message}[^\n]*$"):
        import_marian(folder, tmp_path / "out")


def test_shared_matrices_that_differ_are_refused(tmp_path):
    folder = tmp_path / "marian"
    marian.write_marian(folder)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    for name in ("model.shared.weight", "lm_head.weight"):
        tensors[name] = torch.randn(len(json.loads((folder / "vocab.json").read_text())), 32)
    save_file(tensors, path)

    with pytest.raises(UserError, match=r"tensors \S+ and \S+ differ"):
        import_marian(folder, tmp_path / "out")


def test_an_existing_folder_is_not_overwritten(tmp_path):
    folder = tmp_path / "marian"
    marian.write_marian(folder)
    (tmp_path / "out").mkdir()

    with pytest.raises(UserError, match="exists already"):
        import_marian(folder, tmp_path / "out")


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def write_mirror(folder, pickled=False):
    """Write a mirror of Hugging Face with the model org/opus, and return the folder of its files.

    Args:
        folder: The mirror.
        pickled: Whether the model has pytorch_model.bin instead of model.safetensors.
    """
    files = folder / "huggingface.co" / "org" / "opus" / "resolve" / COMMIT
    reference = marian.write_marian(files)
    if pickled:
        (files / "model.safetensors").unlink()
        torch.save(reference.state_dict(), files / "pytorch_model.bin")
    return files


@pytest.mark.parametrize("pickled", [False, True], ids=["safetensors", "bin"])
def test_a_model_is_downloaded_by_its_name_and_commit(tmp_path, pickled):
    """A mirror takes the place of huggingface.co; the sums of the files are recorded."""
    files = write_mirror(tmp_path / "mirror", pickled)
    folder = tmp_path / "downloaded"
    name = f"org/opus@{COMMIT}"

    assert is_name(name)
    download_marian(name, downloads_in(tmp_path, str(tmp_path / "mirror")), folder)

    import_marian(folder, tmp_path / "out")
    import_marian(files, tmp_path / "expected")
    for path in (tmp_path / "expected").iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()
    assert f"https://huggingface.co/org/opus/resolve/{COMMIT}/vocab.json" in read_lock(tmp_path)


def test_a_name_without_a_commit_is_refused_and_a_folder_is_no_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs" / "opus").mkdir(parents=True)

    assert not is_name("inputs/opus")
    for name in ("Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-en-de@main"):
        with pytest.raises(UserError, match="Helsinki-NLP/opus-mt-en-de@COMMIT"):
            is_name(name)


def test_a_model_that_does_not_exist_is_named_with_its_address(tmp_path):
    (tmp_path / "mirror").mkdir()

    with pytest.raises(UserError, match=r"^[^\n]*org/none/resolve/[^\n]*config\.json[^\n]*$"):
        downloads = downloads_in(tmp_path, str(tmp_path / "mirror"))
        download_marian(f"org/none@{COMMIT}", downloads, tmp_path / "folder")
