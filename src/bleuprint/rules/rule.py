"""A rule: a frozen dataclass whose fields are its settings in params.yaml.

A rule of your own is a class in a new file of this folder; its name in params.yaml is the name of
the class in lower case with underscores (`NoQuestions` is `no_questions`). The name of a base class
of rules begins with _.
"""

import re
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.machine_errors import is_out_of_memory
from bleuprint.text.parallel import Pair
from bleuprint.text.tokenizers import NO_BOUNDS, TokenBounds
from bleuprint.text.unicode import collapse_spaces

Tokens = list[str]


@dataclass
class Candidate:
    """A pair to check; it is tokenized when a check first reads its tokens.

    `score`: how well the sides explain each other, given if a check `needs_translations`;
    `bounds`: the least and the most tokens that each side may have, known without tokenizing it.
    """

    pair: Pair
    languages: tuple[str, str]
    tokenizers: tuple[Callable[[str], Tokens], Callable[[str], Tokens]]
    score: Callable[["Candidate"], float] | None = None
    bounds: tuple[TokenBounds, TokenBounds] = (NO_BOUNDS, NO_BOUNDS)

    @cached_property
    def tokens(self) -> tuple[Tokens, Tokens]:
        """The tokens of both sides by the corpus's tokenizer."""
        source, target = self.tokenizers
        return source(self.pair.source), target(self.pair.target)

    @cached_property
    def alignment_score(self) -> float:
        """How well the sides explain each other."""
        assert self.score is not None, "for a check that needs_translations"
        return self.score(self)


class Rule:
    """The base of edits and checks."""

    # Rules run by rank, then by name, whatever their order in params.yaml.
    rank: ClassVar[int] = 100
    # The languages that the rule supports; None: any.
    known_languages: ClassVar[Collection[str] | None] = None

    @classmethod
    def name(cls) -> str:
        """The rule's name in params.yaml and in filtering statistics."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    def check_language(cls, language: str) -> None:
        """Raise ValueError if the rule does not support a language."""
        known = cls.known_languages
        if known is not None and language not in known:
            raise ValueError(
                f"rule {cls.name()} does not support language {language!r}; "
                f"it supports: {', '.join(sorted(known))}"
            )


@dataclass(frozen=True)
class Edit(Rule, ABC):
    """Changes sentences: of the training text in clean, of held-out sets in tokenize."""

    @abstractmethod
    def edit(self, sentence: str, language: str) -> str:
        """The edited sentence, without line breaks."""


@dataclass(frozen=True)
class Check(Rule, ABC):
    """Keeps or drops a pair of the training text."""

    # Whether it reads `Candidate.alignment_score`, for which word translations are learned.
    needs_translations: ClassVar[bool] = False

    @abstractmethod
    def keeps(self, candidate: Candidate) -> bool:
        """Whether the pair is kept."""

    def keeps_each(self, candidates: Sequence[Candidate]) -> Iterable[bool]:
        """Whether each pair is kept, in order: for checks that are faster on many at once."""
        return map(self.keeps, candidates)


@dataclass(frozen=True)
class SideCheck(Check):
    """Keeps a pair if both sides pass, each checked alone."""

    @abstractmethod
    def passes(self, sentence: str, language: str) -> bool:
        """Whether a side passes."""

    def keeps(self, candidate: Candidate) -> bool:
        return all(map(self.passes, candidate.pair, candidate.languages))


Edits = tuple[Edit, ...]


def apply_edits(sentence: str, language: str, edits: Edits) -> str:
    """A sentence after all edits, with single spaces."""
    for edit in edits:
        sentence = apply_edit(edit, sentence, language)
    return collapse_spaces(sentence)


def apply_edit(edit: Edit, sentence: str, language: str) -> str:
    """A sentence after one edit; raises UserError if it fails or gives more than a line."""
    try:
        new = edit.edit(sentence, language)
    except Exception as error:  # of any kind: the code of a rule is the user's
        raise rule_error(error, sentence) from error
    if not isinstance(new, str):
        raise UserError(
            f"rule {edit.name()}: its edit of {sentence[:60]!r} is {new!r}, no sentence"
        )
    if "\n" in new:
        raise UserError(f"rule {edit.name()}: it inserts a line break into {sentence[:60]!r}")
    return new


def rule_error(error: Exception, text: str | None = None) -> UserError:
    """An error in the code of a rule, which may be a user's, as one line with its place."""
    if is_out_of_memory(error):  # not the rule's fault
        raise error
    if isinstance(error, UserError):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    folder = str(Path(__file__).parent)
    # none if a method cannot be called at all, such as one without its argument
    inside = [frame for frame in frames if frame.filename.startswith(folder)]
    place = (inside or frames)[-1]
    at = "" if text is None else f", at {text[:60]!r}"
    return UserError(f"{place.filename}:{place.lineno}: {type(error).__name__}: {error}{at}")
