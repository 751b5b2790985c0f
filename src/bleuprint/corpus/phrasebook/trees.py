"""What can be said, as trees without a language."""

from __future__ import annotations

from dataclasses import dataclass

from bleuprint.corpus.phrasebook.lexicon import (
    Adjective,
    Modal,
    Name,
    Noun,
    Preposition,
    Pronoun,
    Verb,
    Weather,
    Words,
)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase. `det` is the, a, bare, this, many, some, every or role (he is a doctor)."""

    head: Noun | Name | Pronoun
    det: str = ""
    plural: bool = False
    count: Words | None = None
    adjective: Adjective | None = None
    owner: Phrase | None = None
    relative: Clause | None = None
    other: Name | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """At, to or from somewhere; without `preposition` the noun has its own."""

    relation: str
    phrase: Phrase
    preposition: Preposition | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """A verb and its company. `subject` is missing where a relative pronoun or "who" has its
    place, the object where `gap` says so; the `gap_` fields describe their replacements."""

    verb: Verb
    subject: Phrase | None = None
    tense: str = "present"
    object: Phrase | None = None
    recipient: Phrase | None = None
    adjective: Adjective | None = None
    than: Phrase | None = None
    complement: Words | None = None
    modal: Modal | None = None
    negative: bool = False
    frequency: Words | None = None
    time: Words | None = None
    fronted: bool = False
    manner: Words | None = None
    companion: tuple[Preposition, Phrase] | None = None
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
        head = self.subject.head
        return int(head.person) if isinstance(head, Pronoun) else 4 if self.subject.plural else 2


@dataclass(frozen=True, slots=True)
class Sentence:
    """One clause, or two with a conjunction; `ask` is yesno or a question word."""

    clause: Clause
    ask: str = ""
    link: Words | None = None
    second: Clause | Weather | None = None
    first: bool = False
