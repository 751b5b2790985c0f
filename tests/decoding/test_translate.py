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
from bleuprint.runtime.files import read_json, write_json
from bleuprint.runtime.schema import to_json_value
from bleuprint.text.parallel import Pair
from bleuprint.training.averaging import average_checkpoints
from bleuprint.training.validation import greedy_search
from prepared import prepare
from trainings import merges, toy_pairs

SHAPE = systems.model(
    decoder_layers=2, d_model=16, d_k=4, d_v=4, d_ff=32, norm="pre", tie_embeddings="decoder"
)
EMPTY = 3
DECODE = systems.decode(max_len_b=5)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    test = toy_pairs(30, 5)
    test.insert(EMPTY, Pair(" ", "nothing"))
    sets = {"train": toy_pairs(100, 1), "valid": toy_pairs(9, 2), "test.x": test}
    sets["test.y"] = toy_pairs(9, 6)
    return prepare(tmp_path_factory.mktemp("corpus"), sets, units=merges(50, joint=False))


@pytest.fixture(scope="module")
def model(corpus):
    torch.manual_seed(8)
    sizes = (len(corpus.binary.segmentation(side).vocabulary) for side in ("de", "en"))
    made = Transformer(SHAPE, *sizes).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(3)  # far from even probabilities, so that searches differ
    return made


def outputs(model, source, settings):
    """The best output of each sentence."""
    found = Engine(model, settings).search(source, source.lengths)
    return [best.tokens for (best,) in found]


@pytest.mark.parametrize("beam", [1, 4])
def test_batches_change_nothing(corpus, model, monkeypatch, beam):
    source = corpus.binary.side("test.x", "de")
    settings = dataclasses.replace(DECODE, beam=beam)
    together = outputs(model, source, settings)
    monkeypatch.setattr(engine, "BATCH_TOKENS", 1)
    alone = outputs(model, source, settings)
    assert together == alone
    assert len({tuple(words) for words in together}) > 10


def test_the_bar_of_a_search_counts_empty_lines_too(corpus, model, monkeypatch):
    shown = bars.recorded(monkeypatch)
    source = corpus.binary.side("test.x", "de")
    monkeypatch.setattr(engine, "BATCH_TOKENS", 40)
    Engine(model, DECODE).search(source, source.lengths, progress="translate it")
    Engine(model, DECODE).search(source, source.lengths)
    assert shown == [bars.Bar("translate it", 31, 31), bars.Bar("", 31, 31)]


@pytest.mark.parametrize("extra", [0, 5])
def test_limits_follow_the_source_and_an_empty_line_stays_empty(corpus, model, monkeypatch, extra):
    step = model.step

    def talkative(words, state):
        logits, state = step(words, state)
        logits[:, 7] += 1e6
        return logits, state

    monkeypatch.setattr(model, "step", talkative)
    source = corpus.binary.side("test.x", "de")
    found = outputs(model, source, systems.decode(beam=1, max_len_b=extra))
    # without EOS on either side: an output runs to its source's length and `extra` more
    expected = [int(length) - 1 + extra for length in source.lengths]
    expected[EMPTY] = 0
    assert [len(words) for words in found] == expected
    assert corpus.binary.text("en", found[EMPTY]) == ""


def test_greedy_validation_is_a_beam_of_one(model):
    rng = random.Random(0)
    for length in (1, 4, 9):
        source = torch.tensor([[*rng.choices(range(4, 30), k=length), EOS] for _ in range(5)])
        limits = torch.full((5,), source.size(1) + 20)

        with torch.inference_mode():
            state = model.init_cache(source)
        greedily = systems.decode(beam=1, alpha=0.0)
        found = beam_search(model.step, state, limits, SPECIAL_TOKENS, greedily)
        # at its limit the search ends an output, where greedy decoding breaks it off
        expected = [words[: source.size(1) + 19] for words in greedy_search(model, source)]
        assert [best.tokens for (best,) in found] == expected


@pytest.fixture(scope="module")
def stored(corpus, model, tmp_path_factory):
    """The model as the average stage writes it."""
    folder = tmp_path_factory.mktemp("model")
    average_checkpoints(exported(folder, corpus, {9: model}), Average(last=1), folder / "averaged")
    return folder / "averaged"


def exported(folder, corpus, models, shape=SHAPE):
    """Checkpoints by update, as a training exports them."""
    (checkpoints := folder / "checkpoints").mkdir()
    for update, each in models.items():
        weights = {name: tensor.clone() for name, tensor in named_weights(each).items()}
        save_file(weights, checkpoints / f"{update:07d}.safetensors", {"fingerprint": "f"})
    write_description(checkpoints, shape, corpus.binary, "f")
    record = {"fingerprint": "f", "validation_metric": "loss", "validations": []}
    write_json(checkpoints / "checkpoints.json", record)
    return checkpoints


def translate_into(folder, corpus, stored, settings):
    translate.translate_tests(
        corpus.root / "binary", stored, settings, folder, corpus.root / "tokens"
    )


def test_hypotheses_go_to_files(corpus, model, stored, tmp_path):
    settings = dataclasses.replace(DECODE, attention=True)
    hypotheses, made = tmp_path / "hypotheses", tmp_path / "translation.json"
    translate_into(tmp_path, corpus, stored, settings)
    written = (tmp_path / "hypotheses" / "test.x.en").read_text(encoding="utf-8").split("\n")
    found = outputs(model, corpus.binary.side("test.x", "de"), settings)
    assert written == [*(corpus.binary.text("en", words) for words in found), ""]
    assert len(written) == 32
    names = ("test.x.en", "test.y.en")
    digests = {n: hashlib.sha256((hypotheses / n).read_bytes()).hexdigest() for n in names}
    content = read_json(made)
    content.pop("cut")  # see below
    assert content == {
        "model": "f",
        "averaged": {"settings": {"last": 1}, "updates": [9]},
        "decode": to_json_value(settings),
        "hypotheses": digests,
        "losses": losses_by_hand(model, corpus),
    }


def losses_by_hand(model, corpus):
    return {n: pytest.approx(cross_entropy(model, corpus, n), rel=1e-5) for n in ("x", "y")}


@torch.no_grad()
def cross_entropy(model, corpus, test):
    """Torch's cross-entropy of the references, sentence by sentence, and their tokens."""
    nats, tokens = 0.0, 0
    sides = [corpus.binary.side(f"test.{test}", language) for language in ("de", "en")]
    for source, target in zip(*sides, strict=True):
        words = torch.tensor(target.astype("int64"))
        state = model.init_cache(torch.tensor(source.astype("int64"))[None])
        steps = []
        for word in [BOS, *words[:-1].tolist()]:
            logits, state = model.step(torch.tensor([word]), state)
            steps.append(logits[0])
        nats += float(functional.cross_entropy(torch.stack(steps), words, reduction="sum"))
        tokens += len(words)
    return {"nats": nats, "tokens": tokens}


@pytest.mark.parametrize("changes", [{"precision": "bfloat16"}, {"beam": 3}])
def test_the_loss_is_that_of_the_stored_weights(corpus, model, stored, tmp_path, changes):
    translate_into(tmp_path, corpus, stored, dataclasses.replace(DECODE, **changes))
    assert read_json(tmp_path / "translation.json")["losses"] == losses_by_hand(model, corpus)


def test_tokens_that_are_not_those_of_the_corpus_are_refused(corpus, stored, tmp_path):
    tokens = tmp_path / "tokens"
    shutil.copytree(corpus.root / "tokens", tokens)
    path = tokens / "test.y.de"
    lines = path.read_text("utf-8").split("\n")[:-1]
    path.write_text("".join(f"{line}\n" for line in [*lines, "ba"]), "utf-8")
    with pytest.raises(UserError) as raised:
        translate.translate_tests(
            corpus.root / "binary", stored, DECODE, tmp_path / "results", tokens
        )
    message = f"{path}: has {len(lines) + 1} lines, not {len(lines)}; run: make reproduce"
    assert str(raised.value).startswith(message)
    assert not (tmp_path / "results" / "hypotheses").exists()


@pytest.mark.parametrize("field", ["fingerprint", "averaged"])
def test_a_model_that_does_not_say_its_training_translates_nothing_that_counts(
    corpus, stored, tmp_path, field
):
    model = tmp_path / "model"
    shutil.copytree(stored, model)
    described = read_json(model / "model.json")
    del described[field]
    write_json(model / "model.json", described)
    with pytest.raises(UserError) as raised:
        translate_into(tmp_path / "results", corpus, model, DECODE)
    damaged = f"{model / 'model.json'} is damaged: it does not name the training and the average"
    assert str(raised.value).startswith(damaged)
    assert not (tmp_path / "results" / "translation.json").exists()


def test_translations_that_their_limit_cut_are_recorded(corpus, model, stored, tmp_path):
    """Greedy: those that go on beyond it with a higher limit; a file without any names none."""
    folder, tokens = corpus.binary.folder, corpus.root / "tokens"

    def record(name, limit):
        decode = dataclasses.replace(DECODE, beam=1, max_len_a=0, max_len_b=limit)
        translate.translate_tests(folder, stored, decode, tmp_path / name, tokens)
        return read_json(tmp_path / name / "translation.json")

    def lengths(name, limit):
        decode = dataclasses.replace(DECODE, beam=1, max_len_a=0, max_len_b=limit)
        found = translate.best_translations(Engine(model, decode), corpus.binary, name)
        return [len(each.tokens) for each in found]

    limit, expected = 4, {}
    for name in ("x", "y"):
        of_set = lengths(f"test.{name}", 30)
        if cut := [line for line, length in enumerate(of_set, 1) if length > limit]:
            expected[name] = cut
    assert record("cut", limit)["cut"] == expected
    assert 0 < len(expected["x"]) < 31
    TranslationRecord("f", Averaged({}, []), {}, {}, {}).write(whole := tmp_path / "whole.json")
    assert "cut" not in read_json(whole) and TranslationRecord.read(whole).cut == {}


def test_a_reference_beyond_the_positions_has_no_loss(corpus, model, monkeypatch):
    longest = int(corpus.binary.side("test.x", "en").lengths.max())
    for positions, known in ((longest, True), (longest - 1, False)):
        settings = dataclasses.replace(SHAPE, max_positions=positions)
        monkeypatch.setattr(model, "settings", settings)
        assert (reference_loss(model, corpus.binary, "test.x") is not None) == known


def test_where_the_model_looked_is_kept_of_the_first_sentences(corpus, model, stored, tmp_path):
    settings = dataclasses.replace(DECODE, attention=True)
    translate_into(tmp_path, corpus, stored, settings)
    kept = read_attention(tmp_path / "hypotheses" / "attention.json", "x")
    source = corpus.binary.side("test.x", "de")
    lengths = [int(length) - 1 for length in source.lengths]
    assert [one.line - 1 for one in kept] == [i for i in range(31) if 6 <= lengths[i] <= 14][:2]
    found = outputs(model, source, DECODE)
    for one in kept:
        ids, words = source[one.line - 1].tolist(), found[one.line - 1]
        expected = compute_attention_maps(model, corpus.binary, ids, words)
        assert list(one.maps) == list(expected) == ["cross", "encoder", "decoder"]
        for kind, exact in expected.items():
            stored_map = one.maps[kind]
            assert (stored_map.rows, stored_map.columns) == (exact.rows, exact.columns)
            assert stored_map.weights == pytest.approx(exact.weights, abs=1 / 510 + 1e-6)
    first = (tmp_path / "hypotheses" / "attention.json").read_bytes()
    translate_into(tmp_path, corpus, stored, settings)
    assert (tmp_path / "hypotheses" / "attention.json").read_bytes() == first


def test_attention_is_kept_only_where_it_is_asked_for(corpus, stored, tmp_path):
    for folder, asked in (("without", None), ("with", True)):
        settings = dataclasses.replace(DECODE, attention=asked)
        translate_into(tmp_path / folder, corpus, stored, settings)
    without = {path.name for path in (tmp_path / "without").rglob("*") if path.is_file()}
    assert without == {"test.x.en", "test.y.en", "translation.json"}
    for name in ("test.x.en", "test.y.en"):
        kept = (tmp_path / "with" / "hypotheses" / name).read_bytes()
        assert kept == (tmp_path / "without" / "hypotheses" / name).read_bytes()
    record = read_json(tmp_path / "with" / "translation.json")
    assert list(record["hypotheses"]) == ["test.x.en", "test.y.en"]


def test_an_ensemble_of_checkpoints_translates(corpus, model, tmp_path):
    """From the stage average on: two checkpoints beside each other, the attention of the last."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    checkpoints = exported(tmp_path, corpus, {10: other, 20: model})
    average_checkpoints(checkpoints, Average(last=2, ensemble=True), tmp_path / "averaged")

    (tmp_path / "results").mkdir()
    folder = corpus.binary.folder
    given = folder, tmp_path / "averaged", DECODE, tmp_path / "results"
    translate.translate_tests(*given, corpus.root / "tokens")
    source = corpus.binary.side("test.x", "de")
    ensemble = Ensemble([other, model])
    found = Engine(ensemble, DECODE).search(source, source.lengths)
    expected = [corpus.binary.text("en", best.tokens) for (best,) in found]
    path = tmp_path / "results" / "hypotheses" / "test.x.en"
    assert path.read_text().split("\n")[:-1] == expected
    alone = [corpus.binary.text("en", tokens) for tokens in outputs(model, source, DECODE)]
    assert alone != expected
    record = read_json(tmp_path / "results" / "translation.json")
    assert record["averaged"] == {"settings": {"last": 2, "ensemble": True}, "updates": [10, 20]}
    assert record["losses"]["x"] == reference_loss(
        Ensemble([other, model]), corpus.binary, "test.x"
    )


def test_a_beam_wider_than_the_vocabulary_is_refused(model):
    size = model.projection.out_features
    translate.create_engine(copy.deepcopy(model), dataclasses.replace(DECODE, beam=size))
    message = f"a beam of {size + 1} is wider than the vocabulary of {size} tokens"
    with pytest.raises(UserError, match=message):
        translate.create_engine(model, dataclasses.replace(DECODE, beam=size + 1))
