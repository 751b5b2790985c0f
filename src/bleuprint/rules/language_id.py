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
        """Return whether a sentence may be in a language, that is, no other is much likelier.

        Args:
            sentence: The sentence.
            language: The language in which the sentence should be.
        """
        return self._pass_each([sentence], [language])[0]

    def keeps_each(self, candidates: Sequence[Candidate]) -> list[bool]:
        """Return, for each sentence pair, whether both sides may be in their languages.

        All sentences are given to the language model at once, which is faster than one by one.
        """
        sentences: list[str] = []
        languages: list[str] = []
        for candidate in candidates:
            # Each adds two values: one for the source, then one for the target.
            sentences += candidate.pair
            languages += candidate.languages
        passed = self._pass_each(sentences, languages)
        # So sources are at the even positions, and targets at the odd ones.
        sources_passed = passed[::2]
        targets_passed = passed[1::2]
        return [
            source_passed and target_passed
            for source_passed, target_passed in zip(sources_passed, targets_passed, strict=True)
        ]

    def _pass_each(self, sentences: Sequence[str], languages: Sequence[str]) -> list[bool]:
        """Return, for each sentence, whether it may be in the language that it should be in.

        A sentence fails if another language is at least `min_odds` times as likely.

        Args:
            sentences: The sentences.
            languages: For each sentence, the code of the language that it should be in.
        """
        if not sentences:
            return []
        # A ratio of 0.1 says that another language is 10 times as likely; without such a language,
        # the ratio is 1.
        ratios = _likelihoods(sentences, languages)
        passed: list[bool] = (self.min_odds * ratios > 1).tolist()
        return passed


def likelihood(text: str, language: str) -> float:
    """Return how likely it is that a text is in a language, relative to its likeliest language.

    The result is 1 if no other language is likelier, and 0.1 if another one is ten times as likely.

    Args:
        text: The text.
        language: The code of the language, which must be one that the language model knows.
    """
    return float(_likelihoods([text], [language])[0])


def _likelihoods(sentences: Sequence[str], languages: Sequence[str]) -> "npt.NDArray[np.float64]":
    """Return how likely it is that each sentence is in the language that it should be in.

    Args:
        sentences: The sentences. Only the beginning of a long one is read.
        languages: For each sentence, the code of the language that it should be in.

    Returns:
        For each sentence, the likelihood of this language divided by the likelihood of the
        likeliest language: 1 if no other language is likelier, 0.1 if one is ten times as likely.
    """
    beginnings = []
    for sentence in sentences:
        beginnings.append(replace_white_space(sentence[:_MAX_CHARACTERS]))
    return _language_model().likelihoods_of_languages(beginnings, languages)


@cache
def _language_model() -> "LanguageLikelihoods":
    """Return the model that knows the character sequences of all languages; it is loaded once."""
    # Imported here: each stage imports all rules, and SciPy takes a tenth of a second.
    from bleuprint.text.language_likelihoods import LanguageLikelihoods

    return LanguageLikelihoods(SCRIPTS)
