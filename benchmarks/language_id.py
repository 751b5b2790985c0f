"""Compares language identifiers: errors on short lines, and sentence pairs per second.

    python benchmarks/language_id.py FOLDER/django

The text is Django's translation catalogues (pip download --no-deps django, unpacked; BSD): messages
of 3 to 10 words without placeholders and markup, in the languages of the option --languages. Each
line is judged as a line of its language (an error if it is refused), and as a line of the next
language in the list (an error if it is accepted). heliport and pycld2 need `pip install`.

Prints a row for each identifier: errors of both kinds, and pairs per second with both sides judged,
the best of three rounds. The seconds are CPU time in one thread, which other work disturbs less.
"""

import argparse
import gettext
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from bleuprint.rules.language_id import LanguageId

# The languages of the default recipe, and twenty more.
LANGUAGES = ["en", "de", "fr", "ar", "bg", "ca", "cs", "da", "el", "es", "fi", "he", "hi", "hu"]
LANGUAGES += ["id", "it", "ja", "ko", "nl", "pl", "pt", "ru", "sv"]
PLACEHOLDERS = re.compile(r"%|[{}<>_\n]|http")
# Languages without spaces between words, with the characters that count as a word.
CHARACTERS_PER_WORD = {"ja": 4}
# The stage filter judges the sentences of 1,000 pairs at once.
BLOCK_SENTENCES = 2_000
MIN_TIMED_SENTENCES = 20_000
TIMED_ROUNDS = 3

# Takes sentences and the languages in which they should be; returns which it accepts.
Judge = Callable[[Sequence[str], Sequence[str]], list[bool]]


def main() -> None:
    """Print the errors and the speed of each language identifier.

    Each message is judged twice: in its own language, where refusing it is an error, and in the
    next language of the list, where accepting it is an error.
    """
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("django", type=Path, help="the folder django of the unpacked package")
    parser.add_argument("--languages", nargs="+", default=LANGUAGES)
    arguments = parser.parse_args()
    languages = arguments.languages
    next_languages = dict(zip(languages, languages[1:] + languages[:1], strict=True))
    sentences: list[str] = []
    true_languages: list[str] = []
    counts = []
    for language in languages:
        lines = django_lines(arguments.django, language)
        sentences += lines
        true_languages += [language] * len(lines)
        counts.append(len(lines))
    wrong_languages = [next_languages[language] for language in true_languages]
    print(f"{len(sentences)} lines in {len(languages)} languages, {min(counts)} or more each")
    print(f"{'identifier':<24} {'own refused':>12} {'other accepted':>15} {'pairs/s':>9}")
    for name, make_judge in all_judges():
        try:
            judge = make_judge()
        except ImportError as error:
            print(f"{name:<24} {error}")
            continue
        refused = judge(sentences, true_languages).count(False)
        accepted = judge(sentences, wrong_languages).count(True)
        rate = pairs_per_second(judge, sentences, true_languages)
        print(f"{name:<24} {refused:>12} {accepted:>15} {rate:>9,.0f}")


def django_lines(folder: Path, language: str) -> list[str]:
    """Return Django's distinct messages of 3 to 10 words in a language.

    English messages are the keys of every catalogue, so they are read from the German one.

    Args:
        folder: The folder of the package Django.
        language: The language, such as `de`.
    """
    lines: dict[str, None] = {}
    catalogue_language = "de" if language == "en" else language
    for path in sorted(folder.rglob(f"locale/{catalogue_language}/LC_MESSAGES/*.mo")):
        with path.open("rb") as file:
            # gettext offers no public way to list all messages of a catalogue
            catalogue: dict[Any, str] = vars(gettext.GNUTranslations(file))["_catalog"]
        for key, translation in catalogue.items():
            english = key if isinstance(key, str) else key[0]  # plural forms have a pair as key
            message = english if language == "en" else translation
            line = message.split("\x04")[-1]  # what comes before it is the message's context
            is_untranslated = language != "en" and line == english
            has_fitting_length = 3 <= word_count(line, language) <= 10
            if has_fitting_length and not is_untranslated and not PLACEHOLDERS.search(line):
                lines[line] = None
    return list(lines)


def word_count(line: str, language: str) -> int:
    """Count the words of a line; in languages without spaces, estimate them by characters.

    Args:
        line: The line.
        language: Its language.
    """
    if language in CHARACTERS_PER_WORD:
        return len(line) // CHARACTERS_PER_WORD[language]
    return len(line.split())


def pairs_per_second(judge: Judge, sentences: Sequence[str], languages: Sequence[str]) -> float:
    """Measure how many sentence pairs are judged per CPU second, in the best of several rounds.

    The sentences are repeated until they are numerous enough to be timed.

    Args:
        judge: The judge, which takes lists of sentences and languages.
        sentences: The sentences.
        languages: The language of each sentence.
    """
    repeats = MIN_TIMED_SENTENCES // len(sentences) + 1
    repeated_sentences = list(sentences) * repeats
    repeated_languages = list(languages) * repeats
    round_seconds = []
    for _ in range(TIMED_ROUNDS):
        start = time.process_time()
        for first in range(0, len(repeated_sentences), BLOCK_SENTENCES):
            block = slice(first, first + BLOCK_SENTENCES)
            judge(repeated_sentences[block], repeated_languages[block])
        round_seconds.append(time.process_time() - start)
    # A pair has two sentences to judge.
    pairs = len(repeated_sentences) / 2
    return pairs / min(round_seconds)


def all_judges() -> Iterator[tuple[str, Callable[[], Judge]]]:
    """Yield the name of each identifier, and what makes its judge."""
    for min_odds in (10.0, 5.0, 3.0):
        yield f"language_id {min_odds:g}", partial(judge_by_language_id, min_odds)
    yield "py3langid, one by one", judge_by_py3langid
    yield "CLD2", judge_by_cld2
    yield "CLD2, with hint", partial(judge_by_cld2, has_hint=True)
    yield "heliport", judge_by_heliport
    for margin in (1.0, 1.5):
        yield f"heliport, margin {margin}", partial(judge_by_heliport, 20, margin)


def judge_each(accepts: Callable[[str, str], bool]) -> Judge:
    """Turn a function for one sentence into a judge, which takes lists.

    Args:
        accepts: Returns whether a sentence is in a language.
    """

    def judge(sentences: Sequence[str], languages: Sequence[str]) -> list[bool]:
        return list(map(accepts, sentences, languages))

    return judge


def judge_by_language_id(min_odds: float) -> Judge:
    """Return the judge of the filter language_id.

    Args:
        min_odds: How many times as likely another language must be for a sentence to be refused.
    """
    return LanguageId(min_odds)._pass_each


def judge_by_py3langid() -> Judge:
    """Return a judge that decides like the rule language_id, but by py3langid's own functions.

    The rule accepts a sentence unless another language is 10 times as likely (min_odds 10).
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    from bleuprint.rules.letters import SCRIPTS

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(SCRIPTS)

    def accepts(sentence: str, language: str) -> bool:
        """Compare the language with the most likely one, as language_id does."""
        best_language, best_probability = identifier.classify(sentence)
        if best_language == language:
            return True
        probabilities = dict(identifier.rank(sentence))
        return bool(best_probability < 10 * probabilities[language])

    return judge_each(accepts)


def judge_by_cld2(has_hint: bool = False) -> Judge:
    """Return a judge that refuses a sentence only if CLD2 is sure of another language.

    Args:
        has_hint: Whether CLD2 is told the language in which the sentence should be.
    """
    detect = import_module("pycld2").detect
    cld2_codes = {"he": "iw"}

    def accepts(sentence: str, language: str) -> bool:
        """Let CLD2 judge one sentence."""
        code = cld2_codes.get(language, language)
        options = {"hintLanguage": code} if has_hint else {}
        is_reliable, _, candidates = detect(sentence, bestEffort=True, **options)[:3]
        _, best_code, *_ = candidates[0]
        return not is_reliable or best_code in (code, "un")  # un: unknown

    return judge_each(accepts)


# Our codes of heliport's languages; it knows Arabic and Malay as groups of languages.
HELIPORT_LANGUAGES = {
    "ara": "ar",
    "arb": "ar",
    "arz": "ar",
    "apc": "ar",
    "eng": "en",
    "deu": "de",
    "fra": "fr",
    "bul": "bg",
    "cat": "ca",
    "ces": "cs",
    "dan": "da",
    "ell": "el",
    "spa": "es",
    "fin": "fi",
    "heb": "he",
    "hin": "hi",
    "hun": "hu",
    "msa": "id",
    "ita": "it",
    "jpn": "ja",
    "kor": "ko",
    "nld": "nl",
    "pol": "pl",
    "por": "pt",
    "rus": "ru",
    "swe": "sv",
}


def judge_by_heliport(labels: int = 1, margin: float = 0.0) -> Judge:
    """Return a judge that accepts a sentence if heliport ranks its language high enough.

    Args:
        labels: How many of the best languages are considered.
        margin: How far the language's score, a negative logarithm, may be from the best.
    """
    identify = import_module("heliport").Identifier().identify_topk_with_score

    def accepts(sentence: str, language: str) -> bool:
        """Look for the language among heliport's best."""
        ranked = identify(sentence, labels)
        _, best_score = ranked[0]
        for label, score in ranked:
            code, _, _ = label.partition("_")
            label_language = HELIPORT_LANGUAGES.get(code, label)
            if label_language == language and score - best_score <= margin:
                return True
        return False

    return judge_each(accepts)


if __name__ == "__main__":
    main()
