"""Translation in the directions of a multilingual corpus, `many`.

Each source begins with a tag that names its target language, such as <2de>.
"""

from contextlib import chdir
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import systems
from bleuprint.config.experiment import load_resolved_settings
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.engine import Engine
from bleuprint.decoding.translate import best_translations
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.serving.translator import Translator
from bleuprint.text.parallel import TextFolder
from bleuprint.text.tokenizers import tokenizer_for
from multilingual import DIRECTIONS, languages_of, sentences_of_test_set


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_translation_is_detokenized_in_the_language_of_the_tag(root, corpus, direction):
    """The source begins with a tag, such as <2de>, that names the target language.

    French has a space before a question mark, so that the wrong language would give another text.
    """
    binary_corpus = BinaryCorpus(root / "data/binary/many")
    _, target_language = languages_of(direction)
    sources = binary_corpus.side(f"test.{direction}-news", "src")
    targets = binary_corpus.side(f"test.{direction}-news", "tgt")

    translations = []
    for source, target in zip(sources, targets, strict=True):
        translations.append(binary_corpus.translation(source, target))

    assert translations == sentences_of_test_set(direction, target_language)
    words = binary_corpus.segmentation("tgt").decode(targets[0])
    tokenizer = tokenizer_for(target_language, corpus.tokenize)
    assert translations[0] == tokenizer.detokenize(words)


def random_translator(root, direction, **decode_settings):
    """Return a translator of a direction whose model has random weights."""
    with chdir(root):
        pair = load_resolved_settings().corpus("many").language_pair("many", direction)
        binary_corpus = BinaryCorpus(root / "data/binary/many")
        source_size = len(binary_corpus.segmentation("src").vocabulary)
        target_size = len(binary_corpus.segmentation("tgt").vocabulary)
        torch.manual_seed(1)
        settings = systems.model(tie_embeddings="none")
        model = Transformer(settings, source_size, target_size).eval()
        decode = systems.decode(**decode_settings)
        return Translator(model, binary_corpus, pair.clean, decode, None, pair.languages)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_translator_gives_the_model_the_ids_of_the_binarized_corpus(root, direction):
    """Both put the tag of the target language, such as <2de>, before the source."""
    translator = random_translator(root, direction)
    source_language, _ = languages_of(direction)

    translations = translator(sentences_of_test_set(direction, source_language))

    sources = BinaryCorpus(root / "data/binary/many").side(f"test.{direction}-news", "src")
    for translation, source_ids in zip(translations, sources, strict=True):
        assert translation.pieces[0].source == source_ids.tolist()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_alignment_of_a_translation_has_the_source_words_without_the_tag(root, direction):
    """A source begins with a tag, such as <2de>, that names the target language."""
    translator = random_translator(root, direction)
    source_language, _ = languages_of(direction)

    translations = translator(sentences_of_test_set(direction, source_language))

    tokens = TextFolder(root / "data/tokens/many", "src", "tgt").pairs(f"test.{direction}-news")
    for translation, pair in zip(translations, tokens, strict=True):
        _, *words = pair.source.split()
        assert translator.alignment(translation).source == words


def tag_ids(root):
    """Return the ids of the tag <2de>, which is several subwords in this corpus."""
    *ids, _ = BinaryCorpus(root / "data/binary/many").segmentation("src").encode(["<2de>"]).tolist()
    assert len(ids) > 1
    return ids


def test_each_piece_of_a_long_sentence_begins_with_the_tag(root):
    """A sentence that is too long for the model is translated in pieces.

    Without the tag, which names the target language, the model would translate a piece into any
    language.
    """
    translator = random_translator(root, "en-de", max_len_b=3)

    short, long = translator(["It's so. Isn't it?", "o'clock " * 200])

    assert len(short.pieces) == 1
    assert len(long.pieces) > 1
    tag = tag_ids(root)
    for piece in [*short.pieces, *long.pieces]:
        assert piece.source[: len(tag)] == tag
        assert len(piece.source) <= translator.model.settings.max_positions


def test_an_empty_sentence_has_an_empty_translation_although_its_tag_has_tokens(root):
    translator = random_translator(root, "en-de", max_len_b=3)

    assert translator([""])[0].translations[0].text == ""


class Side(list):
    """The source sentences of a set, as lists of ids."""

    @property
    def lengths(self):
        """The length of each sentence."""
        return np.array([len(sentence) for sentence in self])


def test_decoding_a_test_set_skips_a_source_that_consists_of_its_tag(root):
    """Such a source is an empty sentence, whose translation must be empty, too."""
    translator = random_translator(root, "en-de", max_len_b=3)
    tag = tag_ids(root)
    sentence = translator(["It's so. Isn't it?"])[0].pieces[0].source
    side = Side([[*tag, EOS], sentence])
    # A stand-in for a binarized corpus whose test set has these two sources.
    corpus = SimpleNamespace(
        source="src",
        side=lambda *_: side,
        search_lengths=lambda sources: translator.corpus.tags.search_lengths(
            sources, sources.lengths
        ),
    )

    translations = best_translations(Engine(translator.model, translator.decode), corpus, "test.x")

    has_tokens = [bool(translation.tokens) for translation in translations]
    assert has_tokens == [False, True]


def test_a_sentence_that_contains_a_tag_is_refused(root):
    translator = random_translator(root, "en-de", max_len_b=3)

    with pytest.raises(UserError, match="contains the word '<2fr>', which is the tag"):
        translator(["It is <2fr> o'clock."])
