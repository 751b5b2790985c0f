"""The languages of two files, by their names and by a sample of their lines."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bleuprint.rules.language_likelihoods import LanguageLikelihoods
from bleuprint.rules.letters import SCRIPTS
from bleuprint.runtime.errors import UserError

# A line shorter than this says little.
_SHORT = 20
# Two files are exchanged if more than this share of the lines of each is in the other's language.
_EXCHANGED = 0.5


@dataclass(frozen=True)
class GuessedLanguage:
    """A language by the file's name, if it holds one, and the most frequent one of its lines.

    `share`: of the lines, those most likely in `by_text`.
    """

    by_name: str | None
    by_text: str | None
    share: float

    @property
    def language(self) -> str:
        """That of the name, which the user chose: close languages are often taken for another.

        Empty if neither is known.
        """
        return self.by_name or self.by_text or ""

    @property
    def disagree(self) -> bool:
        return None not in (self.by_name, self.by_text) and self.by_name != self.by_text


def guess_languages(files: Sequence[Path], lines: Sequence[list[str]]) -> list[GuessedLanguage]:
    """The guess for each file, given a sample of its lines.

    Raises UserError if neither name nor text of a file has a language, if both files are in the
    same one, or if the text of each is in the language that the other one's name has.
    """
    guesses = [
        GuessedLanguage(language_of_name(path), *_language_of_text(sample))
        for path, sample in zip(files, lines, strict=True)
    ]
    for path, guess in zip(files, guesses, strict=True):
        if not guess.language:
            raise UserError(f"{path}: unknown language: rename it to end in one, such as .de")
    if guesses[0].language == guesses[1].language:
        raise UserError(
            f"{files[0]} and {files[1]}: both in language {guesses[0].language}: rename them to "
            "end in their languages, such as .de and .en"
        )
    _check_not_exchanged(files, guesses)
    return guesses


def _check_not_exchanged(files: Sequence[Path], guesses: Sequence[GuessedLanguage]) -> None:
    """Raise UserError if the text of each file is in the language of the other one's name."""
    others = [guess.by_name for guess in reversed(guesses)]
    if all(
        other is not None and guess.by_text == other and guess.share > _EXCHANGED
        for guess, other in zip(guesses, others, strict=True)
    ):
        holds = " and ".join(
            f"{path}, which holds {guess.by_text} ({guess.share:.0%} of its lines)"
            for path, guess in zip(files, guesses, strict=True)
        )
        raise UserError(f"the two files are exchanged: rename {holds}")


def language_of_name(path: Path) -> str | None:
    """The last part of a file's name that is a language: de of a.en-de.de or a-de.txt."""
    parts = re.split(r"[^A-Za-z]+", path.name)
    return next((part for part in reversed(parts[1:]) if part in SCRIPTS), None)


def _language_of_text(lines: list[str]) -> tuple[str | None, float]:
    """The language most lines are in, and the share of these lines."""
    if not (lines := [line[:1000] for line in lines if len(line) >= _SHORT]):
        return None, 0.0
    model = _model()
    names = {column: language for language, column in model.columns.items()}
    best = Counter(names.get(int(each)) for each in model.of(lines).argmax(axis=1))
    ((language, count),) = best.most_common(1)
    return language, count / len(lines)


@cache
def _model() -> LanguageLikelihoods:
    return LanguageLikelihoods(SCRIPTS)
