"""A check of the language of a sentence."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

from bleuprint.rules.letters import SCRIPTS
from bleuprint.rules.rule import SideCheck
from bleuprint.runtime.schema import Range

# Characters that are enough to identify a language.
_ENOUGH = 1000


@dataclass(frozen=True)
class LanguageId(SideCheck):
    """Drops a pair with a side that is clearly in another language.

    That is, another language is at least `likelier` times as likely as the side's own; a side too
    short to identify is kept. Close languages (Danish and Norwegian, Bosnian, Croatian and
    Serbian) are distinguished less reliably.
    """

    rank: ClassVar[int] = 200
    known_languages: ClassVar[Collection[str]] = SCRIPTS.keys()
    # Without evidence, a language listed with two scripts is twice as likely as another.
    likelier: Annotated[float, Range(2, open_low=True)]

    def passes(self, sentence: str, language: str) -> bool:
        start = sentence[:_ENOUGH]
        best, likelihood = _identifier().classify(start)
        if best == language:
            return True
        own: float = dict(_identifier().rank(start))[language]
        return bool(likelihood < self.likelier * own)


@cache
def _identifier() -> Any:
    """py3langid's model, loaded once a process: half a second or more, about 190 MB.

    Chosen since its model is in the package, its license is BSD and it needs only NumPy. On
    sentences of 5 words and more it was as accurate as fastText's lid.176.ftz, and as lingua at
    twenty times the speed.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    # Without its class for text in no language, which a line of digits would fall into.
    identifier.set_languages(SCRIPTS)
    # In single precision, rounding and sometimes the decision depend on the processor.
    identifier.nb_ptc = identifier.nb_ptc.astype("float64")
    return identifier
