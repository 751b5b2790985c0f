"""Synthetic training text: a trained system translates one side of it from the other side."""

from types import SimpleNamespace

import pytest

from bleuprint.decoding.sampling import Sampler
from bleuprint.runtime.errors import UserError
from bleuprint.serving.back_translate import translate_piece, write_synthetic_pairs
from bleuprint.serving.translated_pieces import TextPiece
from bleuprint.serving.translator import Translator
from bleuprint.text import parallel
from bleuprint.text.parallel import BLOCK_PAIRS, TextFolder
from corpora import TORTURE, write_set
from trainings import WORDS


def odd_lines():
    """Return lines that are easily mistaken: more than a block of text, the first one empty.

    Words contain odd characters, such as separators at which other programs end a line. Many lines
    are empty, and one is a space.
    """
    lines = [""]
    for number, characters in enumerate([*TORTURE, "".join(TORTURE)]):
        first_word = f"{characters}{WORDS[number]}{characters}"
        lines.append(f"{first_word} {WORDS[-number]}{characters}")
    lines.append(" ")
    lines += [""] * BLOCK_PAIRS
    lines.append(f"{WORDS[3]} {WORDS[4]}")
    return lines


def translate_one_by_one(translator, lines):
    """Return the best translation of each line, each translated alone."""
    translations = []
    for line in lines:
        (translated,) = translator([line])
        translations.append(translated.translations[0].text)
    return translations


def unchanged(translation, line_number):  # noqa: ARG001
    """Return a translation as it is, without noise."""
    return translation


def synthetic_pairs(folder, translator, german_lines, is_source=True, tag=None, change=unchanged):
    """Translate German lines in one piece; return the pairs that are written.

    Args:
        folder: Where to write the text `german` and the synthetic text.
        translator: Translates the lines.
        german_lines: The monolingual text.
        is_source: Whether the translations are the source side of the pairs.
        tag: A word that is put before each source; None for no tag.
        change: A function that changes each translation, such as one that adds noise.
    """
    if is_source:
        german_text = TextFolder(folder / "german", "en", "de")
        one_sided_pairs = [("", line) for line in german_lines]
    else:
        german_text = TextFolder(folder / "german", "de", "en")
        one_sided_pairs = [(line, "") for line in german_lines]
    write_set(german_text, "train", one_sided_pairs)
    output = german_text.with_path(folder / "synthetic")
    output.path.mkdir(exist_ok=True)
    piece = TextPiece(number=1, start=0, stop=len(german_lines))
    translations = translate_piece(translator, german_text, piece, is_source, change, advance=print)
    write_synthetic_pairs(german_text, translations, output, is_source, tag)
    return list(output.pairs("train"))


def test_the_synthetic_source_is_the_tagged_translation_of_each_line(tmp_path, translator):
    """The tag ☀ tells the model that a source is synthetic; an empty translation gets no tag.

    The German lines contain odd characters and empty lines, and must stay beside their translation.
    """
    german_lines = odd_lines()

    pairs = synthetic_pairs(tmp_path, translator, german_lines, is_source=True, tag="☀")

    translations = translate_one_by_one(translator, german_lines)
    assert any(translations)  # Some translations have text, ...
    assert translations[0] == ""  # ... and that of an empty line is empty.
    expected_pairs = []
    for translation, german in zip(translations, german_lines, strict=True):
        source = f"☀ {translation}" if translation else ""
        expected_pairs.append((source, german))
    assert pairs == expected_pairs


def test_the_synthetic_target_is_the_translation_of_each_line_without_its_tag(tmp_path, translator):
    """The tag ☀ marks the source in the pair; the model translates the source without the tag."""
    german_lines = odd_lines()

    pairs = synthetic_pairs(tmp_path, translator, german_lines, is_source=False, tag="☀")

    translations = translate_one_by_one(translator, german_lines)
    assert any(translations)  # Some translations have text, ...
    assert translations[0] == ""  # ... and that of an empty line is empty.
    expected_pairs = []
    for german, translation in zip(german_lines, translations, strict=True):
        source = f"☀ {german}" if german.strip() else german
        expected_pairs.append((source, translation))
    assert pairs == expected_pairs


def sampled_sources(folder, translator, seed):
    """Return translations that are sampled from the model's distribution instead of searched for.

    Args:
        folder: Where to write the texts.
        translator: Its model is used.
        seed: The sampling seed.

    Returns:
        The translations of "WORD WORD x", one for each word in WORDS.
    """
    sampling_translator = Translator(
        translator.model,
        translator.corpus,
        (),
        translator.decode,
        Sampler(seed, None),
    )
    lines = [f"{word} {word} x" for word in WORDS]
    pairs = synthetic_pairs(folder, sampling_translator, lines)
    return [pair.source for pair in pairs]


def test_sampled_translations_of_different_lines_differ(tmp_path, translator):
    """If each line were sampled with the same random numbers, many would be equal."""
    sources = sampled_sources(tmp_path, translator, seed="1 german")

    assert len(set(sources)) > 0.8 * len(sources)


def test_another_seed_samples_other_translations(tmp_path, translator):
    sources = sampled_sources(tmp_path, translator, seed="1 german")

    assert sampled_sources(tmp_path, translator, seed="2 german") != sources


def test_sampled_translations_do_not_depend_on_the_block_size(tmp_path, translator, monkeypatch):
    """A text is read and translated in blocks of sentence pairs; here of 7 instead of thousands."""
    sources = sampled_sources(tmp_path, translator, seed="1 german")

    monkeypatch.setattr(parallel, "BLOCK_PAIRS", 7)

    assert sampled_sources(tmp_path, translator, seed="1 german") == sources


def test_translations_are_changed_by_a_function_that_knows_their_line_number(tmp_path, translator):
    """Noise is added by such a function; this one puts the line number before the translation."""
    lines = odd_lines()

    def number_translation(translation, line_number):
        return f"{line_number} {translation}"

    pairs = synthetic_pairs(tmp_path, translator, lines, change=number_translation)

    first_words = [pair.source.split(" ")[0] for pair in pairs]
    assert first_words == [str(number) for number in range(len(lines))]


class TranslatesOnlyYes:
    """Takes the place of a translator: `yes` is translated to `ja`, other lines to nothing."""

    def __call__(self, lines):
        """Return one translation of each line."""
        results = []
        for line in lines:
            translation = SimpleNamespace(text="ja" if line == "yes" else "")
            results.append(SimpleNamespace(translations=[translation]))
        return results


def test_an_error_is_raised_if_all_translations_are_empty(tmp_path):
    """Such a text would be useless: the system has not learned to translate."""
    with pytest.raises(UserError, match="german: all 3 translations are empty"):
        synthetic_pairs(tmp_path, TranslatesOnlyYes(), ["x", "x", "x"], is_source=False)


def test_an_error_is_raised_if_the_text_is_empty(tmp_path):
    with pytest.raises(UserError, match="german: the text has no lines"):
        synthetic_pairs(tmp_path, TranslatesOnlyYes(), [], is_source=False)


def test_a_note_counts_the_empty_translations(tmp_path, capsys):
    """The stand-in translates "x" to nothing and "yes" to "ja"."""
    synthetic_pairs(tmp_path, TranslatesOnlyYes(), ["x", "yes"], is_source=False)

    note = "german: 1 of 2 translations are empty. The stage clean drops these sentence pairs"
    assert note in capsys.readouterr().err
