"""The BLEU that a perfect system reaches: of detokenize(tokenize(x)) against x, by language.

The text is that of Django's translation catalogues (pip download --no-deps django, unpacked; BSD),
messages of two words and more without placeholders and markup, or files called NAME.LANGUAGE.
Prints for each language its lines, BLEU (sacreBLEU, 13a) with Moses' plain tokens and with those of
`tokenize: {name: moses}`, and the lines that the latter do not bring back. `--apostrophes` puts ’
for '; `--show N` prints N of those lines.
"""

import argparse
import gettext
import re
from collections import defaultdict
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU

from bleuprint.text.moses import Moses
from bleuprint.text.parallel import read_lines
from bleuprint.text.round_trip import RoundTripMoses

_LANGUAGES = "fr ca uk be ar fa ur bn hy uz br ml de cs es ru it"
_PLACEHOLDERS = re.compile(r"[%{}<>_&@#]|://")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("text", type=Path, nargs="+", help="Django's folder, or text files")
    parser.add_argument("--languages", nargs="+", default=_LANGUAGES.split())
    parser.add_argument("--apostrophes", action="store_true")
    parser.add_argument("--show", type=int, default=0)
    given = parser.parse_args()
    print(f"{'language':<9} {'lines':>6} {'plain':>7} {'default':>8} {'changed':>8}")
    for language, lines in _texts(given.text, given.languages).items():
        if given.apostrophes:
            lines = [line.replace("'", "’") for line in lines]
        restored = [
            _restored(kind(language, False, False), lines) for kind in (Moses, RoundTripMoses)
        ]
        plain, default = (BLEU().corpus_score(each, [lines]).score for each in restored)
        changed = [pair for pair in zip(lines, restored[1], strict=True) if pair[0] != pair[1]]
        print(f"{language:<9} {len(lines):>6} {plain:>7.2f} {default:>8.2f} {len(changed):>8}")
        for line, found in changed[: given.show]:
            print(f"  {line}\n  {found}")


def _restored(moses: Moses, lines: list[str]) -> list[str]:
    return [moses.detokenize(moses.tokenize(line)) for line in lines]


def _texts(given: list[Path], languages: list[str]) -> dict[str, list[str]]:
    """The distinct lines of each language, with single spaces."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for path in given:
        for language in languages if path.is_dir() else [path.suffix[1:]]:
            messages = _messages(path, language) if path.is_dir() else list(read_lines(path))
            found[language].update(dict.fromkeys(" ".join(each.split()) for each in messages))
    return {language: [*lines] for language, lines in found.items()}


def _messages(django: Path, language: str) -> list[str]:
    messages: list[str] = []
    for file in sorted(django.glob(f"**/locale/{language}/LC_MESSAGES/django*.mo")):
        with file.open("rb") as opened:
            catalogue = gettext.GNUTranslations(opened)._catalog  # type: ignore[attr-defined]
        messages.extend(text for key, text in catalogue.items() if key)
    return [text for text in messages if " " in text and not _PLACEHOLDERS.search(text)]


if __name__ == "__main__":
    main()
