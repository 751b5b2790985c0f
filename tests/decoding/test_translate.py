"""Translating sets: order, batches and padding change nothing; empty lines stay empty."""

import copy
import dataclasses
import hashlib
import random
import shutil

import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional

import bars
import systems
from bleuprint.config.system import Average
from bleuprint.dataset.subwords.vocabulary import BOS, EOS
from bleuprint.decoding import engine, translate
from bleuprint.decoding.attention_maps import compute_attention_maps, read_attention
from bleuprint.decoding.beam_search import beam_search
from bleuprint.decoding.engine import SPECIAL_TOKENS, Engine
from bleuprint.decoding.ensemble import Ensemble
from bleuprint.decoding.forced_decoding import reference_loss
from bleuprint.decoding.translation_record import TranslationRecord
from bleuprint.model.description import Averaged
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import named_weights, write_description
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json, write_json
from bleuprint.runtime.schema import to_json_value
from bleuprint.text.parallel import Pair
from bleuprint.training.averaging import average_checkpoints
from bleuprint.training.validation import greedy_search
from prepared import prepare
from trainings import bpe_units, toy_pairs

SHAPE = systems.model(
    decoder_layers=2, d_model=16, d_k=4, d_v=4, d_ff=32, norm="pre", tie_embeddings="decoder"
)
# The number of the empty sentence of test set x, counted from 0.
EMPTY = 3
DECODE = systems.decode(max_len_b=5)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A toy corpus with test sets x, of 31 sentences with an empty one, and y, of 9."""
    test = toy_pairs(30, 5)
    test.insert(EMPTY, Pair(" ", "nothing"))
    sets = {
        "train": toy_pairs(100, 1),
        "valid": toy_pairs(9, 2),
        "test.x": test,
        "test.y": toy_pairs(9, 6),
    }
    return prepare(tmp_path_factory.mktemp("corpus"), sets, units=bpe_units(50, joint=False))


@pytest.fixture(scope="module")
def model(corpus):
    """An untrained model whose probabilities differ, so that different searches do too."""
    torch.manual_seed(8)
    source_size = len(corpus.binary.segmentation("de").vocabulary)
    target_size = len(corpus.binary.segmentation("en").vocabulary)
    model = Transformer(SHAPE, source_size, target_size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return model


def best_outputs(model, source, settings):
    """Return the tokens of the best output of each sentence."""
    results = Engine(model, settings).search(source, source.lengths)
    return [best.tokens for (best,) in results]


@pytest.mark.parametrize("beam", [1, 4])
def test_translations_do_not_depend_on_the_size_of_batches(corpus, model, monkeypatch, beam):
    """Translations in a batch are padded to the same length, which must not change them."""
    source = corpus.binary.side("test.x", "de")
    settings = dataclasses.replace(DECODE, beam=beam)

    in_large_batches = best_outputs(model, source, settings)
    monkeypatch.setattr(engine, "BATCH_TOKENS", 1)
    one_by_one = best_outputs(model, source, settings)

    assert in_large_batches == one_by_one
    different_outputs = {tuple(words) for words in in_large_batches}
    assert len(different_outputs) > 10


@pytest.mark.parametrize(
    ("arguments", "title"),
    [({"progress": "translate it"}, "translate it"), ({}, "")],
    ids=["titled", "untitled"],
)
def test_the_progress_bar_of_a_search_counts_empty_sentences_too(
    corpus, model, monkeypatch, arguments, title
):
    """Empty sentences need no search, but the bar must end at the number of all sentences."""
    shown_bars = bars.record_bars(monkeypatch)
    source = corpus.binary.side("test.x", "de")
    monkeypatch.setattr(engine, "BATCH_TOKENS", 40)

    Engine(model, DECODE).search(source, source.lengths, **arguments)

    # 30 sentences and the empty one: the bar ends at 31 of 31.
    assert shown_bars == [bars.Bar(title, 31, 31)]


@pytest.mark.parametrize("max_len_b", [0, 5])
def test_an_output_without_end_is_max_len_b_tokens_longer_than_its_source(
    corpus, model, monkeypatch, max_len_b
):
    """The model never chooses EOS: an output ends at its limit, source length + max_len_b.

    An empty sentence is an exception: its output is empty.
    """
    step = model.step

    def step_to_token_7(words, state):
        logits, state = step(words, state)
        logits[:, 7] += 1e6  # so that EOS is never chosen
        return logits, state

    monkeypatch.setattr(model, "step", step_to_token_7)
    source = corpus.binary.side("test.x", "de")

    outputs = best_outputs(model, source, systems.decode(beam=1, max_len_b=max_len_b))

    source_lengths = [int(length) - 1 for length in source.lengths]  # without EOS
    expected_lengths = [length + max_len_b for length in source_lengths]
    expected_lengths[EMPTY] = 0
    assert [len(words) for words in outputs] == expected_lengths
    assert corpus.binary.text("en", outputs[EMPTY]) == ""


@pytest.mark.parametrize("length", [1, 4, 9])
def test_greedy_search_in_validation_equals_a_beam_search_with_a_beam_of_1(model, length):
    """Validation during training uses a simpler, faster search, which must not change its BLEU."""
    rng = random.Random(length)
    sentences = []
    for _ in range(5):
        sentences.append([*rng.choices(range(4, 30), k=length), EOS])
    source = torch.tensor(sentences)
    limit = source.size(1) + 20

    with torch.inference_mode():
        state = model.init_cache(source)
    beam_of_1 = systems.decode(beam=1, alpha=0.0)
    results = beam_search(model.step, state, torch.full((5,), limit), SPECIAL_TOKENS, beam_of_1)

    # At the limit the beam search writes EOS, and greedy search one more token.
    expected = [words[: limit - 1] for words in greedy_search(model, source)]
    assert [best.tokens for (best,) in results] == expected


@pytest.fixture(scope="module")
def stored(corpus, model, tmp_path_factory):
    """The folder of the model, as the average stage writes it."""
    folder = tmp_path_factory.mktemp("model")
    average_checkpoints(exported(folder, corpus, {9: model}), Average(last=1), folder / "averaged")
    return folder / "averaged"


def exported(folder, corpus, models, shape=SHAPE):
    """Write checkpoints as a training exports them, and return their folder.

    Args:
        folder: Where to make the folder of checkpoints.
        corpus: The prepared corpus.
        models: The models by update.
        shape: Their settings.
    """
    checkpoints = folder / "checkpoints"
    checkpoints.mkdir()
    for update, model in models.items():
        weights = {name: tensor.clone() for name, tensor in named_weights(model).items()}
        save_file(weights, checkpoints / f"{update:07d}.safetensors", {"fingerprint": "f"})
    write_description(checkpoints, shape, corpus.binary, "f")
    record = {"fingerprint": "f", "validation_metric": "loss", "validations": []}
    write_json(checkpoints / "checkpoints.json", record)
    return checkpoints


def translate_into(folder, corpus, stored, settings):
    """Run the translate stage: translate all test sets of the corpus into a folder."""
    translate.translate_tests(
        corpus.root / "binary", stored, settings, folder, corpus.root / "tokens"
    )


def test_the_translate_stage_writes_a_line_for_each_sentence(corpus, model, stored, tmp_path):
    """The test set x has 31 sentences. This process translates them again, for comparison."""
    settings = dataclasses.replace(DECODE, attention=True)

    translate_into(tmp_path, corpus, stored, settings)

    text = (tmp_path / "hypotheses" / "test.x.en").read_text(encoding="utf-8")
    outputs = best_outputs(model, corpus.binary.side("test.x", "de"), settings)
    assert text.split("\n") == [*(corpus.binary.text("en", words) for words in outputs), ""]
    assert text.count("\n") == 31


def test_the_translation_record_names_model_settings_hashes_and_losses(
    corpus, model, stored, tmp_path
):
    """translation.json records what made the translations of the test sets x and y.

    `stored` is the average of one checkpoint, update 9 of the training `f`. The expected losses
    come from PyTorch's cross_entropy.
    """
    settings = dataclasses.replace(DECODE, attention=True)

    translate_into(tmp_path, corpus, stored, settings)

    record = read_json(tmp_path / "translation.json")
    record.pop("cut")  # The lines that the length limit cut have a test of their own.
    hashes = {}
    for name in ("test.x.en", "test.y.en"):
        content = (tmp_path / "hypotheses" / name).read_bytes()
        hashes[name] = hashlib.sha256(content).hexdigest()
    assert record == {
        "model": "f",
        "averaged": {"settings": {"last": 1}, "updates": [9]},
        "decode": to_json_value(settings),
        "hypotheses": hashes,
        "losses": approximate_losses(model, corpus),
    }


def approximate_losses(model, corpus):
    """Return the loss of each test set's references, computed by PyTorch, for comparisons."""
    losses = {}
    for test_set in ("x", "y"):
        losses[test_set] = pytest.approx(cross_entropy(model, corpus, test_set), rel=1e-5)
    return losses


@torch.no_grad()
def cross_entropy(model, corpus, test_set):
    """Return PyTorch's cross-entropy of a test set's references, and the number of their tokens.

    It is computed sentence by sentence and step by step, without batches and padding.
    """
    nats = 0.0
    tokens = 0
    sources = corpus.binary.side(f"test.{test_set}", "de")
    targets = corpus.binary.side(f"test.{test_set}", "en")
    for source, target in zip(sources, targets, strict=True):
        words = torch.tensor(target.astype("int64"))
        state = model.init_cache(torch.tensor(source.astype("int64"))[None])
        steps = []
        for word in [BOS, *words[:-1].tolist()]:
            logits, state = model.step(torch.tensor([word]), state)
            steps.append(logits[0])
        nats += float(functional.cross_entropy(torch.stack(steps), words, reduction="sum"))
        tokens += len(words)
    return {"nats": nats, "tokens": tokens}


@pytest.mark.parametrize("changes", [{"precision": "bfloat16"}, {"beam": 3}], ids=str)
def test_the_recorded_loss_does_not_depend_on_the_settings_of_decoding(
    corpus, model, stored, tmp_path, changes
):
    """The loss of the references tells how good the model is, whatever search is used."""
    translate_into(tmp_path, corpus, stored, dataclasses.replace(DECODE, **changes))

    losses = read_json(tmp_path / "translation.json")["losses"]
    assert losses == approximate_losses(model, corpus)


def test_tokens_with_another_number_of_lines_than_the_binarized_corpus_are_refused(
    corpus, stored, tmp_path
):
    """A line is added to the tokens of the test set y after the corpus has been binarized."""
    tokens = tmp_path / "tokens"
    shutil.copytree(corpus.root / "tokens", tokens)
    path = tokens / "test.y.de"
    text = path.read_text("utf-8")
    line_count = text.count("\n")
    path.write_text(f"{text}ba\n", "utf-8")

    with pytest.raises(UserError) as raised:
        translate.translate_tests(
            corpus.root / "binary", stored, DECODE, tmp_path / "results", tokens
        )

    message = (
        f"{path} has {line_count + 1} lines, but the test set has {line_count}. Run: make reproduce"
    )
    assert str(raised.value).startswith(message)
    assert not (tmp_path / "results" / "hypotheses").exists()


@pytest.mark.parametrize("field", ["fingerprint", "averaged"])
def test_a_model_whose_description_lacks_its_training_or_average_is_refused(
    corpus, stored, tmp_path, field
):
    """From these fields of model.json, translation.json takes which training was used."""
    model = tmp_path / "model"
    shutil.copytree(stored, model)
    description = read_json(model / "model.json")
    del description[field]
    write_json(model / "model.json", description)

    with pytest.raises(UserError) as raised:
        translate_into(tmp_path / "results", corpus, model, DECODE)

    message = f"{model / 'model.json'} is damaged: it does not name the training and the average"
    assert str(raised.value).startswith(message)
    assert not (tmp_path / "results" / "translation.json").exists()


def test_the_record_lists_the_lines_whose_translations_the_length_limit_cut(
    corpus, model, stored, tmp_path
):
    """Cut are those that greedy search makes longer if the limit is higher."""
    limit = 4
    with_limit = dataclasses.replace(DECODE, beam=1, max_len_a=0, max_len_b=limit)
    with_higher_limit = dataclasses.replace(with_limit, max_len_b=30)
    expected = {}
    for test_set in ("x", "y"):
        engine = Engine(model, with_higher_limit)
        outputs = translate.best_translations(engine, corpus.binary, f"test.{test_set}")
        cut_lines = []
        for line, output in enumerate(outputs, 1):
            if len(output.tokens) > limit:
                cut_lines.append(line)
        if cut_lines:
            expected[test_set] = cut_lines

    translate_into(tmp_path, corpus, stored, with_limit)

    assert read_json(tmp_path / "translation.json")["cut"] == expected
    assert 0 < len(expected["x"]) < 31


def test_a_record_without_cut_translations_omits_the_field(tmp_path):
    """Translations are `cut` if the length limit ended them."""
    path = tmp_path / "translation.json"

    TranslationRecord("f", Averaged({}, []), {}, {}, {}).write(path)

    assert "cut" not in read_json(path)
    assert TranslationRecord.read(path).cut == {}


@pytest.mark.parametrize(("missing_positions", "has_loss"), [(0, True), (1, False)])
def test_a_test_set_has_no_loss_if_a_reference_is_longer_than_the_models_positions(
    corpus, model, monkeypatch, missing_positions, has_loss
):
    """Such a model cannot read the whole reference.

    The longest reference just fits, or is one position too long.
    """
    longest = int(corpus.binary.side("test.x", "en").lengths.max())
    settings = dataclasses.replace(SHAPE, max_positions=longest - missing_positions)
    monkeypatch.setattr(model, "settings", settings)

    loss = reference_loss(model, corpus.binary, "test.x")

    assert (loss is not None) == has_loss


def test_attention_is_stored_for_the_first_two_sentences_of_6_to_14_tokens(
    corpus, stored, tmp_path
):
    """The report draws these sentences, which are neither trivial nor too large for a page."""
    translate_into(tmp_path, corpus, stored, dataclasses.replace(DECODE, attention=True))

    stored_sentences = read_attention(tmp_path / "hypotheses" / "attention.json", "x")
    medium_lines = []
    for line, length in enumerate(corpus.binary.side("test.x", "de").lengths, 1):
        if 6 <= length - 1 <= 14:  # without EOS
            medium_lines.append(line)
    assert [sentence.line for sentence in stored_sentences] == medium_lines[:2]


def test_stored_attention_belongs_to_the_sentences_and_their_translations(
    corpus, model, stored, tmp_path
):
    """The expected attention is computed again, from each sentence and its translation."""
    translate_into(tmp_path, corpus, stored, dataclasses.replace(DECODE, attention=True))

    half_a_step = 1 / 255 / 2  # Weights are stored as bytes.
    source = corpus.binary.side("test.x", "de")
    outputs = best_outputs(model, source, DECODE)
    for sentence in read_attention(tmp_path / "hypotheses" / "attention.json", "x"):
        source_ids = source[sentence.line - 1].tolist()
        output_ids = outputs[sentence.line - 1]
        expected_maps = compute_attention_maps(model, corpus.binary, source_ids, output_ids)
        assert list(sentence.maps) == list(expected_maps) == ["cross", "encoder", "decoder"]
        for kind, expected in expected_maps.items():
            stored_map = sentence.maps[kind]
            assert stored_map.rows == expected.rows
            assert stored_map.columns == expected.columns
            assert stored_map.weights == pytest.approx(expected.weights, abs=half_a_step + 1e-6)


def test_attention_is_written_again_with_the_same_bytes(corpus, stored, tmp_path):
    """DVC compares files by hash: a repeated stage must not appear as changed."""
    settings = dataclasses.replace(DECODE, attention=True)
    path = tmp_path / "hypotheses" / "attention.json"

    translate_into(tmp_path, corpus, stored, settings)
    content = path.read_bytes()
    translate_into(tmp_path, corpus, stored, settings)

    assert path.read_bytes() == content


def test_without_decode_attention_no_attention_is_written(corpus, stored, tmp_path):
    translate_into(tmp_path, corpus, stored, dataclasses.replace(DECODE, attention=None))

    files = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"test.x.en", "test.y.en", "translation.json"}


def test_decode_attention_does_not_change_the_translations(corpus, stored, tmp_path):
    """`decode.attention` stores attention weights beside the translations."""
    for folder, attention in (("without", None), ("with", True)):
        settings = dataclasses.replace(DECODE, attention=attention)
        translate_into(tmp_path / folder, corpus, stored, settings)

    for name in ("test.x.en", "test.y.en"):
        translations = (tmp_path / "with" / "hypotheses" / name).read_bytes()
        assert translations == (tmp_path / "without" / "hypotheses" / name).read_bytes()
    record = read_json(tmp_path / "with" / "translation.json")
    assert list(record["hypotheses"]) == ["test.x.en", "test.y.en"]


def test_the_translate_stage_translates_with_an_ensemble_of_checkpoints(corpus, model, tmp_path):
    """The ensemble has two models, which the average stage keeps apart: updates 10 and 20.

    Its expected translations come from a search with both models in this process.
    """
    other_model = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other_model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    checkpoints = exported(tmp_path, corpus, {10: other_model, 20: model})
    average_checkpoints(checkpoints, Average(last=2, ensemble=True), tmp_path / "averaged")

    translate_into(tmp_path / "results", corpus, tmp_path / "averaged", DECODE)

    text = (tmp_path / "results" / "hypotheses" / "test.x.en").read_text()
    source = corpus.binary.side("test.x", "de")
    ensemble = Ensemble([other_model, model])
    ensemble_outputs = best_outputs(ensemble, source, DECODE)
    expected = [corpus.binary.text("en", words) for words in ensemble_outputs]
    assert text.split("\n")[:-1] == expected
    # One model translates differently, so that the comparison means something.
    single_outputs = best_outputs(model, source, DECODE)
    assert [corpus.binary.text("en", words) for words in single_outputs] != expected
    record = read_json(tmp_path / "results" / "translation.json")
    assert record["averaged"] == {"settings": {"last": 2, "ensemble": True}, "updates": [10, 20]}
    assert record["losses"]["x"] == reference_loss(ensemble, corpus.binary, "test.x")


def test_a_beam_as_wide_as_the_vocabulary_is_allowed(model):
    vocabulary_size = model.projection.out_features

    translate.create_engine(copy.deepcopy(model), dataclasses.replace(DECODE, beam=vocabulary_size))


def test_a_beam_wider_than_the_vocabulary_is_refused(model):
    """The first step has only one hypothesis, so that a beam cannot be filled from fewer tokens."""
    vocabulary_size = model.projection.out_features
    beam = vocabulary_size + 1

    message = f"a beam of {beam} is wider than the vocabulary of {vocabulary_size} tokens"
    with pytest.raises(UserError, match=message):
        translate.create_engine(model, dataclasses.replace(DECODE, beam=beam))
