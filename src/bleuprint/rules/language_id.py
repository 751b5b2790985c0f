"""A check of the language of a sentence."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, ClassVar

from annotated_types import Gt

from bleuprint.rules.letters import SCRIPTS
from bleuprint.rules.rule import Candidate, SideCheck
from bleuprint.text.unicode import replace_white_space

if TYPE_CHECKING:
    from bleuprint.text.language_likelihoods import LanguageLikelihoods

# Characters that are enough to identify a language.
_ENOUGH = 1000


@dataclass(frozen=True)
class LanguageId(SideCheck):
    """Drops a pair with a side that is clearly in another language.

    That is, another language is at least `min_odds` times as likely as the side's own; a side too
    short to identify is kept. Close languages (Danish and Norwegian, Bosnian, Croatian and
    Serbian) are distinguished less reliably.
    """

    rank: ClassVar[int] = 200
    known_languages: ClassVar[Collection[str]] = SCRIPTS.keys()
    # Without evidence, a language listed with two scripts is twice as likely as another.
    min_odds: Annotated[float, Gt(2)]

    def passes(self, sentence: str, language: str) -> bool:
        return self._pass([sentence], [language])[0]

    def keeps_each(self, candidates: Sequence[Candidate]) -> list[bool]:
        sentences = [side for candidate in candidates for side in candidate.pair]
        languages = [language for candidate in candidates for language in candidate.languages]
        passed = self._pass(sentences, languages)
        return [all(sides) for sides in zip(passed[::2], passed[1::2], strict=True)]

    def _pass(self, sentences: Sequence[str], languages: Sequence[str]) -> list[bool]:
        """Whether each sentence passes as one in its language."""
        if not sentences:
            return []
        own = _model().likelihoods_of_languages(
            [replace_white_space(each[:_ENOUGH]) for each in sentences], languages
        )
        passed: list[bool] = (self.min_odds * own > 1).tolist()
        return passed


def likelihood(text: str, language: str) -> float:
    """Return how likely a text is in a known language, as a share of its likeliest language."""
    return float(
        _model().likelihoods_of_languages([replace_white_space(text[:_ENOUGH])], [language])[0]
    )


@cache
def _model() -> "LanguageLikelihoods":
    """The model, loaded once a process."""
    # imported here: each stage imports all rules, and SciPy takes a tenth of a second
    from bleuprint.text.language_likelihoods import LanguageLikelihoods

    return LanguageLikelihoods(SCRIPTS)
