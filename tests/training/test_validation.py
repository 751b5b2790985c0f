"""Validation: the loss without dropout and smoothing, BLEU by the target language."""

from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu
import torch
from torch.nn import functional

import systems
from bleuprint.dataset.batch import Batch, pad, read_ids
from bleuprint.dataset.subwords.vocabulary import PAD
from bleuprint.model.transformer import Transformer
from bleuprint.training import validation
from bleuprint.training.validation import Validator
from prepared import prepare
from trainings import ONE_PROCESS, bpe_units


def french_sentence(number):
    """Return a sentence with elisions, which only the detokenizer of French joins."""
    return f"l'eau qu'il a {'b' * (number % 7)}u n'est {'pas ' * (number % 9)}froide."


@pytest.fixture(scope="module")
def thai_to_french(tmp_path_factory):
    """Prepare a text from Thai to French, with 20 validation pairs.

    Attributes of what it returns:
        corpus: The binarized corpus.
        texts: The folder of the text before tokenization.
        ids: The token ids of the validation pairs.
        references: The French validation sentences.
    """
    pairs = [("ก ข " * number, french_sentence(number)) for number in range(1, 61)]
    sets = {"train": pairs[20:], "valid": pairs[:20], "test.x": pairs[:3]}
    root = tmp_path_factory.mktemp("thai-french")
    units = bpe_units(5, joint=False)
    corpus = prepare(root, sets, units=units, languages=("th", "fr")).binary
    return SimpleNamespace(
        corpus=corpus,
        texts=root / "split",
        ids=read_ids(corpus, "valid", np.arange(20)),
        references=[target for _, target in pairs[:20]],
    )


@pytest.fixture
def model(thai_to_french):
    """Return an untrained model with dropout, in training mode."""
    corpus = thai_to_french.corpus
    source_size = len(corpus.segmentation("th").vocabulary)
    target_size = len(corpus.segmentation("fr").vocabulary)
    torch.manual_seed(1)
    settings = systems.model(dropout=0.5, tie_embeddings="decoder")
    return Transformer(settings, source_size, target_size).train()


@pytest.fixture
def translations(thai_to_french, monkeypatch):
    """Let the search find the references without their full stop, and return these translations."""
    outputs = {}
    for source, target in zip(*thai_to_french.ids, strict=True):
        outputs[tuple(source)] = list(target)[:-2]  # Without the full stop and EOS.

    def search(_, source):
        found_outputs = []
        for padded_ids in source.tolist():
            ids = tuple(token for token in padded_ids if token != PAD)
            found_outputs.append(outputs[ids])
        return found_outputs

    monkeypatch.setattr(validation, "greedy_search", search)
    return [reference.removesuffix(".") for reference in thai_to_french.references]


@pytest.mark.usefixtures("translations")
def test_the_validation_loss_is_computed_without_dropout_and_label_smoothing(thai_to_french, model):
    """The reference is torch's cross-entropy per token, of the model in evaluation mode.

    The validator gets the model in training mode, with dropout, and batches of 80 tokens.
    """
    ids = thai_to_french.ids
    model.eval()
    logits = model(pad(ids.source), Batch.from_ids(ids).target)
    expected_loss = functional.cross_entropy(
        logits.flatten(0, 1), pad(ids.target).flatten(), ignore_index=PAD
    )
    validator = Validator(thai_to_french.corpus, thai_to_french.texts, max_tokens=80)

    scores = validator.validate(model.train(), ONE_PROCESS)

    assert scores["loss"] == pytest.approx(expected_loss.item(), rel=1e-5)


@pytest.mark.usefixtures("translations")
def test_the_model_is_in_training_mode_after_a_validation(thai_to_french, model):
    Validator(thai_to_french.corpus, thai_to_french.texts, 80).validate(model, ONE_PROCESS)

    assert model.training


def test_the_bleu_score_of_a_validation_is_that_of_detokenized_translations(
    thai_to_french, model, translations
):
    """The search is replaced: it finds the references without their full stop.

    The reference score is that of sacreBLEU for this text before tokenization.
    """
    expected = sacrebleu.corpus_bleu(translations, [thai_to_french.references])
    validator = Validator(thai_to_french.corpus, thai_to_french.texts, max_tokens=80)

    scores = validator.validate(model, ONE_PROCESS)

    assert scores["bleu"] == pytest.approx(expected.score)


def test_a_validation_of_several_directions_is_scored_by_characters_if_one_target_is_thai(
    thai_to_french, model, translations, monkeypatch
):
    """Thai has no spaces between words, and sacreBLEU has no tokenizer for it.

    The corpus here has two target languages, each with the tag that asks for it: French and Thai.
    """
    target_languages = {"<2fr>": "fr", "<2th>": "th"}
    monkeypatch.setattr(thai_to_french.corpus.tags, "languages", target_languages)
    expected = sacrebleu.corpus_bleu(translations, [thai_to_french.references], tokenize="char")
    validator = Validator(thai_to_french.corpus, thai_to_french.texts, max_tokens=80)

    scores = validator.validate(model, ONE_PROCESS)

    assert scores["bleu"] == pytest.approx(expected.score)
