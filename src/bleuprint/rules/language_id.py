"""A check of the language that a sentence is in."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

from bleuprint.rules.rule import SideCheck
from bleuprint.rules.scripts import SCRIPTS
from bleuprint.runtime.schema import Range

# So many characters tell a language.
_ENOUGH = 1000


@dataclass(frozen=True)
class LanguageId(SideCheck):
    """Drops a pair with a side that is clearly in another language.

    That is, another one is at least `likelier` times as likely as its own, so that what is too
    short or too odd to tell stays. Close relatives (Danish and Norwegian, Bosnian, Croatian
    and Serbian) are told apart less surely.
    """

    rank: ClassVar[int] = 200
    known_languages: ClassVar[Collection[str]] = SCRIPTS.keys()
    # What has nothing to tell by is twice as likely to be in a language known in two scripts.
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
    """py3langid's model, loaded once a process: half a second or more, some 190 MB.

    It was chosen for a model in the package, which makes no connection, a license without ties
    (BSD) and no dependency but NumPy; on sentences of 5 words and more it was as sure as
    fastText's lid.176.ftz, and as sure as lingua at twenty times its speed.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    # Without its class of what is no language: a line of figures is in none but its own.
    identifier.set_languages(SCRIPTS)
    # In single precision the last digits, and so now and then a verdict, depend on the processor.
    identifier.nb_ptc = identifier.nb_ptc.astype("float64")
    return identifier
