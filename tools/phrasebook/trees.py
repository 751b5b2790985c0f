"""Sentences as trees, before they are put into a language.

A tree contains entries of the lexicon, which have a form in each language, and says nothing about
the order of words: `english`, `german` and `french` decide it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.phrasebook import lexicon
from tools.phrasebook.lexicon import NOTHING

# Indices of the third persons in tables of conjugation: I, you, he or she, we, they.
THIRD_SINGULAR = 2
THIRD_PLURAL = 4


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase.

    Attributes:
        head: The noun, name or pronoun.
        determiner: `the`, `a`, `this`, `many`, `some`, `every`; `bare` without an article; `own`
            with an owner; `role` in "he is a doctor". Empty with names and pronouns.
        is_plural: Whether the phrase is plural.
        count: The number before the noun.
        adjective: The adjective before or after the noun.
        owner: The phrase that a possessive or a genitive refers to.
        relative: The relative clause.
        second_name: The name after "and", if two persons are named.
    """

    head: lexicon.Noun | lexicon.Name | lexicon.Pronoun
    determiner: str = ""
    is_plural: bool = False
    count: lexicon.Words = NOTHING
    adjective: lexicon.Adjective | None = None
    owner: Phrase | None = None
    relative: Clause | None = None
    second_name: lexicon.Name | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A place, or the person with whom something is done.

    Attributes:
        relation: `at`, `to` or `from`.
        phrase: Where it is.
        preposition: The preposition; None for the one that the noun requires.
    """

    relation: str
    phrase: Phrase
    preposition: lexicon.Preposition | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """A verb and its complements.

    Attributes:
        verb: The verb.
        subject: The subject; None if a relative pronoun or "who" replaces it, or if "there is".
        tense: `present`, `past`, `future` or `progressive`.
        object: The direct object, or the one with the preposition that the verb governs.
        recipient: The person to whom something is given.
        adjective: What the subject is: "old".
        than: What the subject is compared with: "older than".
        complement: A fixed expression after the verb: "hungry", "three years old".
        modal: The modal verb.
        is_negated: Whether the clause is negated.
        frequency: An adverb such as "often".
        time: An adverbial of time.
        is_fronted: Whether the time is the first part of the clause.
        manner: An adverb of manner.
        companion: The person with whom something is done.
        place: The place.
        infinitive: What is tried or begun.
        purpose: What something is done for.
        gap: `object` if a relative pronoun or a question word replaces the object.
        is_gap_plural: Whether the relative pronoun is plural.
        gap_gender: The gender of the relative pronoun in French.
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
    is_negated: bool = False
    frequency: lexicon.Words = NOTHING
    time: lexicon.Words = NOTHING
    is_fronted: bool = False
    manner: lexicon.Words = NOTHING
    companion: Place | None = None
    place: Place | None = None
    infinitive: Clause | None = None
    purpose: Clause | None = None
    gap: str = ""
    is_gap_plural: bool = False
    gap_gender: str = "m"

    @property
    def person(self) -> int:
        """The index of the verb form for the subject: 0 to 4 for I, you, he or she, we, they."""
        # In a relative clause, the relative pronoun takes the subject's place: "who reads".
        if self.subject is None:
            return THIRD_PLURAL if self.is_gap_plural else THIRD_SINGULAR
        if isinstance(self.subject.head, lexicon.Pronoun):
            return int(self.subject.head.person)
        return THIRD_PLURAL if self.subject.is_plural else THIRD_SINGULAR


@dataclass(frozen=True, slots=True)
class Sentence:
    """One clause, or two with a conjunction.

    Attributes:
        clause: The main clause.
        question: The question word, `yesno` for a question without one, or empty.
        link: The conjunction between the clauses.
        second: The clause after the conjunction; a sentence about the weather is ready-made.
        starts_with_second: Whether the second clause precedes the main clause.
    """

    clause: Clause
    question: str = ""
    link: lexicon.Words = NOTHING
    second: Clause | lexicon.Weather | None = None
    starts_with_second: bool = False


def join_words(*words: str) -> str:
    """Return the words that are not empty, separated by spaces."""
    return " ".join(word for word in words if word)
