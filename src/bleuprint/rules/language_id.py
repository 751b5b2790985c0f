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
    import numpy as np
    import numpy.typing as npt

    from bleuprint.text.language_likelihoods import LanguageLikelihoods

# So many characters are enough to identify a language; the rest of a sentence is not read.
_MAX_CHARACTERS = 1000


@dataclass(frozen=True)
class LanguageId(SideCheck):
    """Drops a pair with a side that is clearly in another language.

    That is, another language is at least `min_odds` times as likely as the side's own; a side too
    short to identify is kept. Close languages (Danish and Norwegian, Bosnian, Croatian and
    Serbian) are distinguished less reliably.
    """

    rank: ClassVar[int] = 200
    known_languages: ClassVar[Collection[str]] = SCRIPTS.keys()
    # The limit is above 2: without evidence, a language listed with two scripts is twice as likely
    # as another one.
    min_odds: Annotated[float, Gt(2)]

    def passes(self, sentence: str, language: str) -> bool:
        """Return whether no other language is much likelier than the sentence's own."""
        return self._pass_each([sentence], [language])[0]

    def keeps_each(self, candidates: Sequence[Candidate]) -> list[bool]:
        """Return for each pair whether it is kept; many sentences at once are faster."""
        sentences: list[str] = []
        languages: list[str] = []
        for candidate in candidates:
            sentences += candidate.pair
            languages += candidate.languages
        passed = self._pass_each(sentences, languages)
        # Source and target sentences alternate.
        return [
            source_passes and target_passes
            for source_passes, target_passes in zip(passed[::2], passed[1::2], strict=True)
        ]

    def _pass_each(self, sentences: Sequence[str], languages: Sequence[str]) -> list[bool]:
        """Return for each sentence whether it passes as a sentence of its language."""
        if not sentences:
            return []
        # The likelihoods are shares of the likeliest language's likelihood.
        passed: list[bool] = (self.min_odds * _likelihoods(sentences, languages) > 1).tolist()
        return passed


def likelihood(text: str, language: str) -> float:
    """Return how likely a text is in a known language, as a share of its likeliest language."""
    return float(_likelihoods([text], [language])[0])


def _likelihoods(sentences: Sequence[str], languages: Sequence[str]) -> "npt.NDArray[np.float64]":
    """Return how likely each sentence is in its language, as a share of its likeliest language."""
    beginnings = []
    for sentence in sentences:
        beginnings.append(replace_white_space(sentence[:_MAX_CHARACTERS]))
    return _model().likelihoods_of_languages(beginnings, languages)


@cache
def _model() -> "LanguageLikelihoods":
    """Return the model of all languages, loaded once a process."""
    # Imported here: each stage imports all rules, and SciPy takes a tenth of a second.
    from bleuprint.text.language_likelihoods import LanguageLikelihoods

    return LanguageLikelihoods(SCRIPTS)
