"""Identifiers of languages side by side: errors on short lines, and pairs a second.

The text is that of Django's translation catalogues (pip download --no-deps django, unpacked; BSD):
messages of 3 to 10 words without placeholders and markup, in the languages given by the option
--languages. Each line is judged as one of its language (wrong if it is refused) and as one of the
next language of the list (wrong if it is accepted). heliport and pycld2 need `pip install`.
Prints a row for each library: errors of both kinds, and pairs a second, both sides judged, best of
three; the seconds are those of the processor, in one thread, so that other work disturbs them less.
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

# The default's languages, and twenty more.
_LANGUAGES = "en de fr ar bg ca cs da el es fi he hi hu id it ja ko nl pl pt ru sv"
_PLACEHOLDERS = re.compile(r"%|[{}<>_\n]|http")
# Those whose words have no spaces between them: characters in place of words.
_UNSPACED = {"ja": 4}

# Whether each sentence is accepted as one in the language beside it.
Judge = Callable[[Sequence[str], Sequence[str]], list[bool]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("django", type=Path, help="the folder django of the unpacked package")
    parser.add_argument("--languages", nargs="+", default=_LANGUAGES.split())
    given = parser.parse_args()
    lines = {language: _lines(given.django, language) for language in given.languages}
    sentences = [line for each in lines.values() for line in each]
    own = [language for language, each in lines.items() for _ in each]
    least = min(map(len, lines.values()))
    after = dict(zip(given.languages, given.languages[1:] + given.languages[:1], strict=True))
    other = [after[language] for language in own]
    print(f"{len(sentences)} lines in {len(lines)} languages, {least} or more each")
    print(f"{'identifier':<24} {'own refused':>12} {'other accepted':>15} {'pairs/s':>9}")
    for name, make in _judges():
        try:
            judge = make()
        except ImportError as error:
            print(f"{name:<24} {error}")
            continue
        refused = judge(sentences, own).count(False)
        accepted = judge(sentences, other).count(True)
        print(f"{name:<24} {refused:>12} {accepted:>15} {_speed(judge, sentences, own):>9,.0f}")


def _lines(django: Path, language: str) -> list[str]:
    """The distinct messages of 3 to 10 words; those in English are the keys of the others."""
    found: dict[str, None] = {}
    folder = "de" if language == "en" else language
    for path in sorted(django.rglob(f"locale/{folder}/LC_MESSAGES/*.mo")):
        with path.open("rb") as file:
            catalogue: dict[Any, str] = vars(gettext.GNUTranslations(file))["_catalog"]
        for key, translated in catalogue.items():
            message = key if isinstance(key, str) else key[0]
            text = (message if language == "en" else translated).split("\x04")[-1]
            per_word = _UNSPACED.get(language)
            words = len(text) // per_word if per_word else len(text.split())
            same = language != "en" and text == message
            if 3 <= words <= 10 and not same and not _PLACEHOLDERS.search(text):
                found[text] = None
    return list(found)


def _speed(judge: Judge, sentences: Sequence[str], languages: Sequence[str]) -> float:
    """Pairs a second, of two lines each, in blocks of 1,000 pairs as in the stage filter."""
    times = 20_000 // len(sentences) + 1
    repeated, names = (list(each) * times for each in (sentences, languages))

    def seconds() -> float:
        began = time.process_time()
        for start in range(0, len(repeated), 2000):
            judge(repeated[start : start + 2000], names[start : start + 2000])
        return time.process_time() - began

    return len(repeated) / 2 / min(seconds() for _ in range(3))


def _judges() -> Iterator[tuple[str, Callable[[], Judge]]]:
    for min_odds in (10.0, 5.0, 3.0):
        yield f"language_id {min_odds:g}", partial(_language_id, min_odds)
    yield "py3langid, one by one", _py3langid
    yield "CLD2", _cld2
    yield "CLD2, with hint", lambda: _cld2(hint=True)
    yield "heliport", _heliport
    for margin in (1.0, 1.5):
        yield f"heliport, margin {margin}", partial(_heliport, 20, margin)


def _language_id(min_odds: float) -> Judge:
    return LanguageId(min_odds)._pass


def _py3langid() -> Judge:
    """The decision of language_id with min_odds 10 by py3langid's own functions."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    from bleuprint.rules.letters import SCRIPTS

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(SCRIPTS)

    def accepts(sentence: str, language: str) -> bool:
        best, likelihood = identifier.classify(sentence)
        return bool(best == language or likelihood < 10 * dict(identifier.rank(sentence))[language])

    return lambda sentences, languages: list(map(accepts, sentences, languages))


def _cld2(hint: bool = False) -> Judge:
    """Refused only if CLD2 is sure of another language (its flag is_reliable)."""
    detect = import_module("pycld2").detect
    codes = {"he": "iw"}

    def accepts(sentence: str, language: str) -> bool:
        code = codes.get(language, language)
        options = {"hintLanguage": code} if hint else {}
        reliable, _, ((_, found, *_), *_) = detect(sentence, bestEffort=True, **options)
        return not reliable or found in (code, "un")

    return lambda sentences, languages: list(map(accepts, sentences, languages))


# It knows Arabic and Malay as macrolanguages.
_HELIPORT = {
    **dict.fromkeys(("ara", "arb", "arz", "apc"), "ar"),
    **{"eng": "en", "deu": "de", "fra": "fr", "bul": "bg", "cat": "ca", "ces": "cs", "dan": "da"},
    **{"ell": "el", "spa": "es", "fin": "fi", "heb": "he", "hin": "hi", "hun": "hu", "msa": "id"},
    **{"ita": "it", "jpn": "ja", "kor": "ko", "nld": "nl", "pol": "pl", "por": "pt", "rus": "ru"},
    "swe": "sv",
}


def _heliport(labels: int = 1, margin: float = 0.0) -> Judge:
    """Refused if heliport's `labels` best languages lack the language, or have it over `margin`
    behind the best; its scores are negative logarithms.
    """
    identify = import_module("heliport").Identifier().identify_topk_with_score

    def accepts(sentence: str, language: str) -> bool:
        ranked = identify(sentence, labels)
        names = [_HELIPORT.get(label.partition("_")[0], label) for label, _ in ranked]
        scores = [score for name, (_, score) in zip(names, ranked, strict=True) if name == language]
        return bool(scores) and min(scores) - ranked[0][1] <= margin

    return lambda sentences, languages: list(map(accepts, sentences, languages))


if __name__ == "__main__":
    main()
