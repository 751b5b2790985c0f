"""The base classes of cleaning and filtering rules: `Edit` changes sentences, `Check` drops pairs.

A rule is a frozen dataclass whose fields are its settings in params.yaml. Its name in params.yaml
is the name of the class in lower case with underscores (`NoQuestions` is `no_questions`). The name
of a base class of rules begins with _. A rule of your own is a class in a new file of the project's
folder own/; its name is that of the file: `own.no_questions`.
"""

import re
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.machine_errors import is_out_of_memory
from bleuprint.runtime.own_code import import_own, module_name, place_of_error
from bleuprint.text.language_codes import language_code
from bleuprint.text.parallel import Pair
from bleuprint.text.tokenizers import NO_BOUNDS, TokenBounds
from bleuprint.text.unicode import collapse_spaces

Tokens = list[str]
# Messages show so many characters of a sentence.
_SHOWN_CHARACTERS = 60


@dataclass
class Candidate:
    """A sentence pair to check. It is tokenized when a check first reads its tokens.

    Attributes:
        pair: The sentences.
        languages: The codes of the source and the target language, without script and region.
        tokenizers: The tokenizers of both languages.
        score: Returns the alignment score; None if no check `needs_translations`.
        bounds: For each side the smallest and the largest number of tokens that it may have, as far
            as this is known without tokenizing it.
    """

    pair: Pair
    languages: tuple[str, str]
    tokenizers: tuple[Callable[[str], Tokens], Callable[[str], Tokens]]
    score: Callable[["Candidate"], float] | None = None
    bounds: tuple[TokenBounds, TokenBounds] = (NO_BOUNDS, NO_BOUNDS)

    @cached_property
    def tokens(self) -> tuple[Tokens, Tokens]:
        """The tokens of both sides, by the tokenizer of the corpus."""
        tokenize_source, tokenize_target = self.tokenizers
        return tokenize_source(self.pair.source), tokenize_target(self.pair.target)

    @cached_property
    def alignment_score(self) -> float:
        """How well the words of both sides translate each other, as an alignment model scores them.

        The score is about 2 for good translations, and about -1 for unrelated sentences.
        """
        assert self.score is not None, "only checks with needs_translations read the score"
        return self.score(self)


class Rule:
    """The base of edits and checks.

    Attributes:
        rank: Rules run by rank, then by name, whatever their order in params.yaml.
        known_languages: The codes of the languages that the rule supports; None if it supports all.
        own_module: For a rule in own/, the name of its module with the fingerprint of the code;
            empty for built-in rules. The rule's import sets it.
    """

    rank: ClassVar[int] = 100
    known_languages: ClassVar[Collection[str] | None] = None
    own_module: ClassVar[str] = ""

    @classmethod
    def name(cls) -> str:
        """Return the name of the rule in params.yaml: `length_ratio` for a class LengthRatio.

        For a rule in own/, it is the name of the module, such as `own.questions`.
        """
        if cls.own_module:
            return module_name(cls.own_module)
        # An underscore is put between a lower-case letter or digit and the upper-case one after it.
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    def key(cls) -> str:
        """Return the name under which files record the rule, with the fingerprint of own code."""
        return cls.own_module or cls.name()

    @property
    def fingerprint_name(self) -> str:
        """The name under which the rule counts in fingerprints of settings."""
        return self.own_module or type(self).__name__

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Let another process import the code of a rule in own/, when it receives the rule."""
        if not self.own_module:
            return super().__reduce_ex__(protocol)
        return restore_rule, (self.own_module, type(self).__name__, vars(self))

    @classmethod
    def check_language(cls, language: str) -> None:
        """Raise ValueError if the rule does not support a language.

        Most rules support all languages. Others list those that they know.

        Args:
            language: The language, perhaps with a script or a region, such as `de` or `zh-Hant`.
        """
        if cls.known_languages is None or language_code(language) in cls.known_languages:
            return
        raise ValueError(
            f"rule {cls.name()} does not support language {language!r}. "
            f"It supports: {', '.join(sorted(cls.known_languages))}"
        )


@dataclass(frozen=True)
class Edit(Rule, ABC):
    """A rule that changes sentences.

    The stage clean applies it to the training text, the stage tokenize to held-out sets.
    """

    @abstractmethod
    def edit(self, sentence: str, language: str) -> str:
        """Return the edited sentence, which must not contain line breaks.

        Args:
            sentence: The sentence.
            language: The code of its language.
        """


@dataclass(frozen=True)
class Check(Rule, ABC):
    """A rule that keeps or drops pairs of the training text.

    Attributes:
        needs_translations: Whether the rule reads `Candidate.alignment_score`, for which the stage
            filter learns word translations.
    """

    needs_translations: ClassVar[bool] = False

    @abstractmethod
    def keeps(self, candidate: Candidate) -> bool:
        """Return whether a pair is kept."""

    def keeps_each(self, candidates: Sequence[Candidate]) -> Iterable[bool]:
        """Return, for each pair in order, whether it is kept.

        A rule that is faster on many pairs at once overrides this method.
        """
        return map(self.keeps, candidates)


@dataclass(frozen=True)
class SideCheck(Check):
    """A check that keeps a pair if both sides pass, each checked on its own."""

    @abstractmethod
    def passes(self, sentence: str, language: str) -> bool:
        """Return whether one side passes.

        Args:
            sentence: The source or the target sentence.
            language: The code of its language.
        """

    def keeps(self, candidate: Candidate) -> bool:
        """Return whether both sides of a sentence pair pass, each checked on its own."""
        source_language, target_language = candidate.languages
        # The target is not checked if the source fails, which saves time.
        if not self.passes(candidate.pair.source, source_language):
            return False
        return self.passes(candidate.pair.target, target_language)


Edits = tuple[Edit, ...]


def restore_rule(own_module: str, class_name: str, settings: dict[str, Any]) -> Rule:
    """Create a rule of own code in another process, which received it from this one.

    Args:
        own_module: The name of the module, with its fingerprint.
        class_name: The name of the rule's class.
        settings: The settings of the rule.
    """
    rule_class: type[Rule] = getattr(import_own(own_module), class_name)
    rule_class.own_module = own_module
    return rule_class(**settings)


def apply_edits(sentence: str, language: str, edits: Edits) -> str:
    """Apply edits to a sentence one after the other, then reduce runs of spaces to one space.

    Args:
        sentence: The sentence.
        language: The language of the sentence, such as `de` or `zh-Hant`.
        edits: The edits, in the order in which they are applied.

    Returns:
        The edited sentence.
    """
    for edit in edits:
        sentence = apply_edit(edit, sentence, language)
    return collapse_spaces(sentence)


def apply_edit(edit: Edit, sentence: str, language: str) -> str:
    """Apply one cleaning rule to a sentence, and check its result.

    A user may have written the rule, so it may fail, or return something that is not one line of
    text.

    Args:
        edit: The rule.
        sentence: The sentence.
        language: Its language, such as `de` or `zh-Hant`. The rule gets the code of the language
            alone, `zh`.

    Raises:
        UserError: The rule fails, or does not return one line of text.
    """
    try:
        edited_sentence = edit.edit(sentence, language_code(language))
    except Exception as error:  # The code of a user may raise errors of any class.
        raise rule_error(error, sentence) from error
    if not isinstance(edited_sentence, str):
        beginning = sentence[:_SHOWN_CHARACTERS]
        raise UserError(
            f"rule {edit.name()}: its edit of {beginning!r} returns {edited_sentence!r}. It must "
            "return a string"
        )
    if "\n" in edited_sentence:
        beginning = sentence[:_SHOWN_CHARACTERS]
        raise UserError(
            f"rule {edit.name()}: its edit of {beginning!r} contains a line break. It must return "
            "one line"
        )
    return edited_sentence


def rule_error(error: Exception, text: str | None = None) -> UserError:
    """Turn an error in the code of a cleaning or filtering rule into a message of one line.

    A user may have written the rule. The message begins with the file and line that failed, so that
    the user can mend the rule.

    Args:
        error: The error that the rule has raised.
        text: The sentence or pair at which the rule failed; None if its import failed.

    Returns:
        The error to raise instead. A UserError is returned unchanged, since it already has a
        message of one line.

    Raises:
        Exception: The same error, if the machine is out of memory: the rule is not to blame.
    """
    if is_out_of_memory(error):
        raise error
    if isinstance(error, UserError):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    own_place = place_of_error(error)
    # A rule may call library functions, so the error may come from there. The last frame in the
    # folder of rules is the line of the rule that failed.
    rules_folder = str(Path(__file__).parent)
    rule_frames = [frame for frame in frames if frame.filename.startswith(rules_folder)]
    # There is no such frame if the rule could not be called: its method lacks a parameter.
    last_frame = rule_frames[-1] if rule_frames else frames[-1]
    place = own_place or f"{last_frame.filename}:{last_frame.lineno}"
    message = f"{place}: {type(error).__name__}: {error}"
    if text is not None:
        message += f", at {text[:_SHOWN_CHARACTERS]!r}"
    return UserError(message)
