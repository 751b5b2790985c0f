"""Validation: the loss without dropout and smoothing, BLEU by the target language."""

import numpy as np
import pytest
import sacrebleu
from torch.nn import functional

import systems
from bleuprint.dataset.batch import Batch, pad, read_ids
from bleuprint.dataset.subwords.vocabulary import PAD
from bleuprint.model.transformer import Transformer
from bleuprint.training import validation
from bleuprint.training.validation import Validator
from prepared import prepare
from trainings import ALONE, merges


def test_loss_and_bleu_of_a_validation(tmp_path, monkeypatch):
    """From Thai, by characters in BLEU, to French, whose elisions only its detokenizer joins."""
    pairs = [
        ("ก ข " * n, f"l'eau qu'il a {'b' * (n % 7)}u n'est {'pas ' * (n % 9)}froide.")
        for n in range(1, 61)
    ]
    sets = {"train": pairs[20:], "valid": pairs[:20], "test.x": pairs[:3]}
    made = prepare(tmp_path, sets, units=merges(5, joint=False), languages=("th", "fr"))
    corpus = made.binary
    ids = read_ids(corpus, "valid", np.arange(20))
    sizes = [len(corpus.segmentation(language).vocabulary) for language in ("th", "fr")]
    model = Transformer(systems.model(dropout=0.5, tie_embeddings="decoder"), *sizes).train()

    # translations without their last token, the full stop, and EOS
    outputs = {tuple(s): list(t)[:-2] for s, t in zip(*ids, strict=True)}

    def search(_, source):
        return [outputs[tuple(i for i in row if i != PAD)] for row in source.tolist()]

    monkeypatch.setattr(validation, "greedy_search", search)
    found = Validator(corpus, tmp_path / "split", 80).validate(model, ALONE)
    assert model.training
    references = [target for _, target in pairs[:20]]
    translations = [line.removesuffix(".") for line in references]
    bleu = sacrebleu.corpus_bleu(translations, [references]).score
    assert found["bleu"] == pytest.approx(bleu)
    # of several directions, one into a language without spaces
    corpus.tags.languages = {"<2fr>": "fr", "<2th>": "th"}
    of_directions = Validator(corpus, tmp_path / "split", 80).validate(model.train(), ALONE)
    bleu = sacrebleu.corpus_bleu(translations, [references], tokenize="char").score
    assert of_directions["bleu"] == pytest.approx(bleu)
    logits = model.eval()(pad(ids.source), Batch.from_ids(ids).target)
    loss = functional.cross_entropy(
        logits.flatten(0, 1), pad(ids.target).flatten(), ignore_index=PAD
    )
    assert found["loss"] == pytest.approx(loss.item(), rel=1e-5)
