"""Sentences as trees, before they are put into a language."""

from __future__ import annotations

from dataclasses import dataclass

from tools.phrasebook import lexicon
from tools.phrasebook.lexicon import NOTHING


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase. `det` is the, a, bare, this, many, some, every or role (he is a doctor)."""

    head: lexicon.Noun | lexicon.Name | lexicon.Pronoun
    det: str = ""
    plural: bool = False
    count: lexicon.Words = NOTHING
    adjective: lexicon.Adjective | None = None
    owner: Phrase | None = None
    relative: Clause | None = None
    other: lexicon.Name | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """At, to or from somewhere, by the noun's own preposition unless `preposition` is given."""

    relation: str
    phrase: Phrase
    preposition: lexicon.Preposition | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """A verb and its complements.

    A relative pronoun or "who" replaces the missing subject, or the object if `gap` is "object";
    the other `gap_` fields are its number and its French gender.
    """

    verb: lexicon.Verb
    subject: Phrase | None = None
    tense: str = "present"
    object: Phrase | None = None
    recipient: Phrase | None = None
    adjective: lexicon.Adjective | None = None
    than: Phrase | None = None
    complement: lexicon.Words = NOTHING
    modal: lexicon.Modal | None = None
    negative: bool = False
    frequency: lexicon.Words = NOTHING
    time: lexicon.Words = NOTHING
    fronted: bool = False
    manner: lexicon.Words = NOTHING
    companion: Place | None = None
    place: Place | None = None
    infinitive: Clause | None = None
    purpose: Clause | None = None
    gap: str = ""
    gap_plural: bool = False
    gap_gender: str = "m"

    @property
    def person(self) -> int:
        """The subject's person and number, as an index of the conjugation tables."""
        if self.subject is None:
            return 4 if self.gap_plural else 2
        if isinstance(self.subject.head, lexicon.Pronoun):
            return int(self.subject.head.person)
        return 4 if self.subject.plural else 2


@dataclass(frozen=True, slots=True)
class Sentence:
    """One clause, or two with the conjunction `link`; `ask` is yesno or a question word."""

    clause: Clause
    ask: str = ""
    link: lexicon.Words = NOTHING
    second: Clause | lexicon.Weather | None = None
    first: bool = False


def joined(*words: str) -> str:
    """The words that are not empty, separated by spaces."""
    return " ".join(filter(None, words))
