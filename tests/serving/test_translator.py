"""A user's sentences are translated as by the pipeline, one line for each line."""

from dataclasses import dataclass, replace

import pytest

from bleuprint.config.paths import Run
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.beam_search import Hypothesis, length_penalty
from bleuprint.rules.rule import Edit
from bleuprint.serving.translator import Translator, _PreparedSentence, load_translator
from bleuprint.text.tokenizers import Tokenize, tokenizer_for

RUN = Run("micro", "toy", 1)
TEST_SOURCE = "data/split/toy/test.x.de"


def read_lines(path):
    """Return the lines of a file; only a newline ends a line."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def best_texts(translated_lines):
    """Return the text of the best translation of each line."""
    return [translated.translations[0].text for translated in translated_lines]


def test_a_warning_names_a_translation_that_its_maximum_length_cuts_off(toy, translator):
    sentences = ["be", "ba be", "gu", *read_lines(toy / TEST_SOURCE)]
    max_tokens = 2
    short_search = replace(translator.decode, beam=1, max_len_a=0, max_len_b=max_tokens)
    long_search = replace(short_search, max_len_b=50)

    translated_in_full = load_translator(RUN, long_search)(sentences)
    translated_up_to_2_tokens = load_translator(RUN, short_search)(sentences)

    full_lengths = [len(translated.pieces[0].tokens) for translated in translated_in_full]
    assert min(full_lengths) <= max_tokens < max(full_lengths)
    warning = (
        "the translation is cut off at its maximum length (decode.max_len_a, decode.max_len_b)"
    )
    for full_length, translated in zip(full_lengths, translated_up_to_2_tokens, strict=True):
        is_cut_off = full_length > max_tokens
        assert (warning in translated.warnings) == is_cut_off


def test_extra_spaces_are_tokens_if_the_training_text_was_not_cleaned(translator, monkeypatch):
    """SpaCy makes a token, written `\u2420`, of a leading space and of a second space."""
    tokenizer = tokenizer_for("de", Tokenize("spacy", white_space=True))
    monkeypatch.setattr(translator.corpus, "tokenizer", lambda _: tokenizer)
    no_edits = ()
    translator_without_cleaning = Translator(
        translator.model, translator.corpus, no_edits, translator.decode
    )

    (translated,) = translator_without_cleaning([" ba  be"])

    assert translated.words == ["\u2420", "ba", "\u2420", "be"]


def test_cleaning_removes_extra_spaces(translator, monkeypatch):
    tokenizer = tokenizer_for("de", Tokenize("spacy", white_space=True))
    monkeypatch.setattr(translator.corpus, "tokenizer", lambda _: tokenizer)

    (translated,) = translator([" ba  be"])

    assert translated.words == ["ba", "be"]


ODD_LINES = ["", " ", "\x01\x07", "مرحبا 👍🏽", "a\rb\u2028c\x0b", "ba " * 40, "\u0000", "🙂" * 50]


def test_each_odd_line_has_one_line_of_translation(translator):
    """The lines contain control characters, emoji, and characters at which others end a line.

    A further line would shift all following translations against their sources.
    """
    translations = best_texts(translator(ODD_LINES))

    assert len(translations) == len(ODD_LINES)
    for translation in translations:
        assert "\n" not in translation


def test_lines_without_text_have_empty_translations(translator):
    assert best_texts(translator(["", " "])) == ["", ""]


def test_odd_lines_are_translated_together_as_one_by_one(translator):
    """Sentences are searched in batches, and must not influence each other."""
    translations_one_by_one = []
    for line in ODD_LINES:
        translations_one_by_one += best_texts(translator([line]))

    assert best_texts(translator(ODD_LINES)) == translations_one_by_one


@dataclass(frozen=True)
class PutLanguageFirst(Edit):
    """An edit that puts the language code that it gets before the sentence."""

    def edit(self, sentence, language):
        """Return the language code and the sentence."""
        return f"{language} {sentence}"


def test_an_edit_gets_the_source_language(translator):
    """This edit, a cleaning step, puts the language before the sentence: "ba" becomes "de ba"."""
    editing_translator = Translator(
        translator.model, translator.corpus, (PutLanguageFirst(),), translator.decode
    )

    assert editing_translator.ids("ba") == translator.ids("de ba")
    # Otherwise a missing or wrong language would not be noticed.
    assert translator.ids("de ba") != translator.ids("ba")
    assert translator.ids("de ba") != translator.ids("en ba")
    assert translator.ids("ba") != translator.ids("en ba")


def test_a_loaded_translator_edits_sentences_as_the_training_text_was_edited(translator):
    """The training text was normalized to Unicode NFC, and control characters were removed."""
    composed = "caf\u00e9\x00"
    decomposed = "cafe\u0301"

    loaded = load_translator(RUN, translator.decode)

    assert loaded.ids(decomposed) == loaded.ids(composed)
    assert loaded.ids(composed) == translator.ids(composed)


@pytest.fixture
def long_sentence_pieces(translator):
    """Return a sentence of 602 tokens, and the pieces into which it is split between words.

    A piece has room for 255 tokens, since max_positions is 256 and EOS takes one. `be` is one
    token, and `Bbb` is three.
    """
    assert len(translator.ids("be")) == 1
    assert len(translator.ids("Bbb")) == 3
    pieces = [
        "be be " + "Bbb " * 84,  # 254 tokens; another word would not fit
        "Bbb " * 85,  # 255 tokens
        "Bbb " * 31,
    ]
    return "".join(pieces), pieces


def test_the_excess_tokens_of_a_long_sentence_are_counted(translator, long_sentence_pieces):
    """The sentence has 602 tokens, and the model has room for 255 besides EOS."""
    sentence, _ = long_sentence_pieces

    (translated,) = translator([sentence])

    assert translated.excess_tokens == 602 - 255


def test_a_sentence_too_long_for_the_model_is_translated_in_pieces(
    translator, long_sentence_pieces
):
    """The pieces are translated one by one, and their translations are joined by spaces."""
    sentence, pieces = long_sentence_pieces

    (translation,) = best_texts(translator([sentence]))

    translations_of_pieces = best_texts(translator(pieces))
    assert all(translations_of_pieces)
    assert translation == " ".join(translations_of_pieces)


def test_a_sentence_after_a_long_one_is_translated_as_alone(translator, long_sentence_pieces):
    """The long one is split into three pieces, whose translations must not be mixed up with it."""
    long_sentence, _ = long_sentence_pieces

    _, translation = best_texts(translator([long_sentence, "be"]))

    assert [translation] == best_texts(translator(["be"]))


def test_search_in_bfloat16_finds_nearly_the_translations_of_float32(toy, translator, monkeypatch):
    """Most translations are equal, with nearly equal scores.

    The variable BLEUPRINT_EMULATE allows bfloat16 on a processor that lacks it.
    """
    monkeypatch.setenv("BLEUPRINT_EMULATE", "1")
    sources = read_lines(toy / TEST_SOURCE)
    bfloat16_translator = load_translator(RUN, replace(translator.decode, precision="bfloat16"))

    scores = []
    bfloat16_scores = []
    translated_lines = zip(translator(sources), bfloat16_translator(sources), strict=True)
    for translated, bfloat16_translated in translated_lines:
        best = translated.translations[0]
        bfloat16_best = bfloat16_translated.translations[0]
        if best.text == bfloat16_best.text:
            scores.append(best.score)
            bfloat16_scores.append(bfloat16_best.score)

    assert len(scores) > 0.8 * len(sources)  # Most lines have equal translations, ...
    assert bfloat16_scores == pytest.approx(scores, abs=0.1)  # ... with nearly equal scores.
    assert bfloat16_scores != scores  # Equal scores would mean that float32 was used twice.


def test_outputs_with_equal_text_are_merged_and_keep_the_better_score(translator):
    """Different subwords may spell the same text."""
    token = 5
    other_token = 6
    outputs = [
        Hypothesis([token], -1.0, -1.5),
        Hypothesis([other_token], -2.0, -3.0),
        Hypothesis([token], -4.0, -6.0),
    ]
    prepared = _PreparedSentence(["ba"], token_count=1, pieces=[[token, EOS]])

    translations = translator._different_translations(prepared, [outputs])

    assert [translation.score for translation in translations] == [-1.0, -2.0]
    assert translations[0].text != translations[1].text


def test_the_score_of_a_long_sentence_is_computed_as_if_it_had_one_piece(translator):
    """It is the sum of the log-probabilities, divided by the length penalty for all tokens."""
    pieces = ["be " * 255, "be " * 30]

    (translated,) = translator(["".join(pieces)])

    log_prob = 0.0
    length = 0
    for translated_piece in translator(pieces):
        piece_length = len(translated_piece.pieces[0].tokens) + 1  # EOS counts, too
        penalty = length_penalty(piece_length, translator.decode)
        log_prob += translated_piece.translations[0].score * penalty
        length += piece_length
    expected_score = log_prob / length_penalty(length, translator.decode)
    assert translated.translations[0].score == pytest.approx(expected_score)
