"""Measures the BLEU ceiling of languages: the BLEU of a text after tokenizing and detokenizing it.

    python benchmarks/bleu_ceiling.py FOLDER/django
    python benchmarks/bleu_ceiling.py captions.fr captions.de --apostrophes --show 5

A system that outputs exactly the tokens of the reference cannot score higher, so a language whose
tokens cannot be joined again loses points before any training. The text is Django's translation
catalogues (pip download --no-deps django, unpacked; BSD), without messages of one word and those
with placeholders or markup, or files called NAME.LANGUAGE.

Prints for each language the number of lines, sacreBLEU's BLEU (13a) with plain Moses tokens and
with the tokens of `tokenize: {name: moses}`, and how many lines the latter change. `--apostrophes`
replaces ' by ’; `--show N` prints N of the changed lines.
"""

import argparse
import gettext
import re
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU

from bleuprint.text.moses import Moses
from bleuprint.text.parallel import read_lines
from bleuprint.text.round_trip import RoundTripMoses

LANGUAGES = ["fr", "ca", "uk", "be", "ar", "fa", "ur", "bn", "hy", "uz", "br", "ml", "de", "cs"]
LANGUAGES += ["es", "ru", "it"]
PLACEHOLDERS = re.compile(r"[%{}<>_&@#]|://")


def main() -> None:
    """Print the table of BLEU ceilings."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("text", type=Path, nargs="+", help="Django's folder, or text files")
    parser.add_argument("--languages", nargs="+", default=LANGUAGES)
    parser.add_argument("--apostrophes", action="store_true")
    parser.add_argument("--show", type=int, default=0)
    arguments = parser.parse_args()
    print(f"{'language':<9} {'lines':>6} {'plain':>7} {'default':>8} {'changed':>8}")
    for language, lines in texts_by_language(arguments.text, arguments.languages).items():
        if arguments.apostrophes:
            lines = [line.replace("'", "’") for line in lines]
        print_ceilings(language, lines, arguments.show)


def print_ceilings(language: str, lines: list[str], shown_lines: int) -> None:
    """Print a language's row of the table, then some lines that tokenizing changes for good.

    The lines are tokenized and joined again (a round trip), and scored against themselves by BLEU:
    once by plain Moses, and once by bleuprint's default, which is meant to change fewer lines.

    Args:
        language: The code of the language.
        lines: Its lines.
        shown_lines: The number of changed lines to print.
    """
    after_plain_moses = round_trip(Moses(language, False, False), lines)
    after_default = round_trip(RoundTripMoses(language, False, False), lines)
    plain_bleu = BLEU().corpus_score(after_plain_moses, [lines]).score
    default_bleu = BLEU().corpus_score(after_default, [lines]).score
    changed = []
    for line, line_after in zip(lines, after_default, strict=True):
        if line != line_after:
            changed.append((line, line_after))
    print(
        f"{language:<9} {len(lines):>6} {plain_bleu:>7.2f} {default_bleu:>8.2f} {len(changed):>8}"
    )
    for line, line_after in changed[:shown_lines]:
        print(f"  {line}\n  {line_after}")


def round_trip(moses: Moses, lines: list[str]) -> list[str]:
    """Tokenize each line, and join its tokens again.

    Args:
        moses: The tokenizer and detokenizer of a language.
        lines: The lines.

    Returns:
        The lines after the round trip.
    """
    return [moses.detokenize(moses.tokenize(line)) for line in lines]


def texts_by_language(paths: list[Path], languages: list[str]) -> dict[str, list[str]]:
    """Return the distinct lines of each language, with single spaces.

    Args:
        paths: Folders of Django, and text files whose suffix is their language.
        languages: The languages that are read from Django.
    """
    lines_by_language: dict[str, list[str]] = {}
    for path in paths:
        if path.is_dir():
            for language in languages:
                lines = django_messages(path, language)
                lines_by_language.setdefault(language, []).extend(lines)
        else:
            language = path.suffix.removeprefix(".")
            lines_by_language.setdefault(language, []).extend(read_lines(path))
    distinct = {}
    for language, lines in lines_by_language.items():
        normalized = [" ".join(line.split()) for line in lines]
        distinct[language] = list(dict.fromkeys(normalized))
    return distinct


def django_messages(folder: Path, language: str) -> list[str]:
    """Return Django's messages in a language: two words or more, and no placeholders.

    Args:
        folder: The folder of the package Django.
        language: The language of the catalogue, such as `de`.
    """
    messages = []
    for path in sorted(folder.glob(f"**/locale/{language}/LC_MESSAGES/django*.mo")):
        with path.open("rb") as file:
            # gettext offers no public way to list all messages of a catalogue
            catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        for key, text in catalogue.items():
            is_header = key == ""
            if not is_header and " " in text and not PLACEHOLDERS.search(text):
                messages.append(text)
    return messages


if __name__ == "__main__":
    main()
