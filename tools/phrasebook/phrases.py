"""Draw noun phrases and places at random.

Every choice uses up numbers of one random sequence, so that the order of the choices is part of the
text: after a change of the order, the same seed writes other sentences.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from tools.phrasebook import lexicon
from tools.phrasebook.lexicon import (
    NOTHING,
    PRONOUNS,
    SMALL_NUMBERS,
    Adjective,
    Name,
    Noun,
    Pronoun,
)
from tools.phrasebook.trees import Clause, Phrase, Place

Item = TypeVar("Item")

# How often a noun that can have a relative clause has one.
RELATIVE_IN_SUBJECT = 0.18
RELATIVE_IN_PHRASE = 0.1
# A person has two to five sons.
NUMBERS_OF_RELATIVES = SMALL_NUMBERS[:4]


class Dice:
    """Draws at random, with the one method of `random` that Python never changes."""

    def __init__(self, seed: int) -> None:
        """Start the sequence of a seed."""
        self._draw = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """Return True with a probability."""
        return self._draw() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        """Draw an item; the first is three times as likely as the last."""
        number = self._draw()
        # A uniform number x is mapped to x (1 + x) / 2, also from 0 to 1. The slope of this curve
        # grows from 1/2 to 3/2. Where it is steep, fewer numbers fall on an item.
        return items[int(len(items) * number * (1 + number) / 2)]

    def weighted(self, **weights: float) -> str:
        """Draw one of the names, in proportion to their weights."""
        # The built-in `sum` rounds differently since Python 3.12, which would change the text.
        total = 0.0
        for weight in weights.values():
            total += weight
        rest = self._draw() * total
        for name, weight in weights.items():
            rest -= weight
            if rest < 0:
                return name
        # By rounding errors, a small rest may be left over. It belongs to the last name.
        return name


def third_person(sex: str, *, is_plural: bool) -> Phrase:
    """Return the pronoun he, she or they."""
    if is_plural:
        return Phrase(lexicon.THEY, is_plural=True)
    return Phrase(lexicon.HE if sex == "m" else lexicon.SHE)


def pronoun_phrase(pronoun: Pronoun) -> Phrase:
    """Return the noun phrase of a pronoun."""
    return Phrase(pronoun, is_plural=pronoun in (lexicon.WE, lexicon.THEY))


def kind_of(phrase: Phrase) -> str:
    """Return the kind of what a phrase refers to: names and pronouns refer to persons."""
    if isinstance(phrase.head, Noun):
        return phrase.head.classes[0]
    return "person"


def is_named(phrase: Phrase | None) -> bool:
    """Return whether a phrase is a name."""
    return phrase is not None and isinstance(phrase.head, Name)


class Phrases(Dice, ABC):
    """Draws noun phrases and places; a subclass draws the relative clauses in them."""

    @abstractmethod
    def relative_clause(self, head: Noun, *, is_plural: bool) -> Clause | None:
        """Draw a clause about a noun.

        Args:
            head: The noun.
            is_plural: Whether the noun is plural.

        Returns:
            The clause; None if none fits.
        """

    def subject(
        self, classes: tuple[str, ...], relative_probability: float = RELATIVE_IN_SUBJECT
    ) -> Phrase:
        """Draw a subject: "she", "Anna", "Anna and Paul", or "the old man".

        Args:
            classes: The classes of nouns that can be the subject.
            relative_probability: How often the noun has a relative clause.
        """
        if "person" not in classes or (len(classes) > 1 and self.chance(0.35)):
            other_classes = tuple(name for name in classes if name != "person")
            return self.noun_phrase(
                other_classes, is_definite=True, relative_probability=relative_probability
            )
        kind = self.weighted(pronoun=0.36, name=0.16, couple=0.04, noun=0.44)
        if kind == "pronoun":
            return pronoun_phrase(self.pick(PRONOUNS))
        if kind == "noun":
            return self.noun_phrase(
                ("person",), is_definite=True, relative_probability=relative_probability
            )
        first_name = self.pick(lexicon.names("person"))
        second_name = self.pick(lexicon.names("person"))
        if kind == "couple" and first_name is not second_name:
            return Phrase(first_name, is_plural=True, second_name=second_name)
        return Phrase(first_name)

    def noun_phrase(
        self,
        classes: tuple[str, ...],
        possible_owner: Phrase | None = None,
        *,
        is_definite: bool = False,
        relative_probability: float = RELATIVE_IN_PHRASE,
    ) -> Phrase:
        """Draw a noun with its determiner or owner, number, adjective and relative clause.

        Args:
            classes: The classes of the noun.
            possible_owner: The phrase to which a possessive may refer.
            is_definite: Whether "the" and "this" are likely.
            relative_probability: How often the noun has a relative clause.
        """
        head = self.pick(lexicon.nouns(*classes))
        if "mass" in head.classes:
            determiner = "the" if is_definite else self.weighted(bare=0.7, the=0.3)
            return Phrase(head, determiner, adjective=self.adjective(head, 0.25))
        is_plural = False
        if "one" not in head.classes:
            is_plural = self.chance(0.6 if "pair" in head.classes else 0.24)
        if self._has_owner(head):
            return self.owned(
                head,
                possible_owner,
                is_plural=is_plural,
                relative_probability=relative_probability,
            )
        determiner = self._determiner(is_plural=is_plural, is_definite=is_definite)
        count = NOTHING
        if is_plural and determiner in ("the", "bare") and self.chance(0.4):
            count = self.pick(SMALL_NUMBERS)
        adjective = self.adjective(head, 0.36)
        relative = None
        can_have_relative = determiner in ("the", "a") and "cup" not in head.classes
        if can_have_relative and self.chance(relative_probability):
            relative = self.relative_clause(head, is_plural=is_plural)
        return Phrase(head, determiner, is_plural, count, adjective, relative=relative)

    def _has_owner(self, head: Noun) -> bool:
        """Draw whether a noun has an owner: relatives always, parts and possessions sometimes."""
        if "kin" in head.classes:
            return True
        kind = head.classes[0]
        if kind == "part" and self.chance(0.6):
            return True
        is_possession = kind in ("wear", "thing", "text", "vehicle") or "pet" in head.classes
        return is_possession and self.chance(0.25)

    def _determiner(self, *, is_plural: bool, is_definite: bool) -> str:
        """Draw a determiner.

        Args:
            is_plural: Whether the noun is plural.
            is_definite: Whether "the" and "this" are likely.
        """
        if is_definite:
            if is_plural:
                return self.weighted(the=0.6, this=0.1, many=0.12, some=0.08, bare=0.1)
            return self.weighted(the=0.72, this=0.14, every=0.04, a=0.1)
        if is_plural:
            return self.weighted(the=0.35, this=0.08, many=0.1, some=0.1, bare=0.37)
        return self.weighted(the=0.45, this=0.1, a=0.45)

    def adjective(self, head: Noun, probability: float) -> Adjective | None:
        """Draw an adjective that fits a noun, with a probability.

        A noun of two English words, such as "traffic light", has none.
        """
        if " " in head.en or not self.chance(probability):
            return None
        kind = "drink" if "mass" in head.classes else head.classes[0]
        fitting = lexicon.adjectives(kind, is_after_verb=False)
        if not fitting:
            return None
        return self.pick(fitting)

    def owned(
        self,
        head: Noun,
        subject: Phrase | None,
        *,
        is_plural: bool = False,
        relative_probability: float = 0,
    ) -> Phrase:
        """Draw a noun phrase with an owner, such as "his old car" or "Anna's two brothers".

        Args:
            head: The noun.
            subject: The subject of the clause.
            is_plural: Whether the noun is plural.
            relative_probability: How often a noun in this place has a relative clause.
        """
        owner = self._owner(head, subject)
        has_possessive = isinstance(owner.head, Pronoun)
        count = NOTHING
        if is_plural and has_possessive and "kin" in head.classes and self.chance(0.5):
            count = self.pick(NUMBERS_OF_RELATIVES)
        adjective = self.adjective(head, 0.28)
        relative = None
        # Half as often as after an article.
        if has_possessive and self.chance(relative_probability / 2):
            relative = self.relative_clause(head, is_plural=is_plural)
        return Phrase(head, "own", is_plural, count, adjective, owner, relative)

    def _owner(self, head: Noun, subject: Phrase | None) -> Phrase:
        """Draw the owner of a noun: a pronoun, a name or a person; for a part, a building."""
        # Also drawn for parts, which ignore it: each draw uses up a random number, and without this
        # one all later choices, and so the text, would change.
        kind = self.weighted(pronoun=0.74, name=0.12, noun=0.14)
        if head.classes[0] == "part":
            return Phrase(self.pick(lexicon.nouns("build")), "the")
        if kind == "pronoun":
            return self._pronoun_owner(subject)
        if kind == "name":
            return Phrase(self.pick(lexicon.names("person")))
        people = [noun for noun in lexicon.nouns("person") if "kin" not in noun.classes]
        return Phrase(self.pick(people), "the", self.chance(0.2))

    def _pronoun_owner(self, subject: Phrase | None) -> Phrase:
        """Draw the pronoun of a possessive, which often refers to the subject."""
        if subject is not None and self.chance(0.6):
            if isinstance(subject.head, Pronoun):
                return subject
            if subject.is_plural or subject.head.sex:
                return third_person(subject.head.sex, is_plural=subject.is_plural)
        return Phrase(self.pick(PRONOUNS))

    def person_other_than(self, subject: Phrase | None, probability: float) -> Phrase | None:
        """Draw, with a probability, a pronoun or a name for another person than the subject.

        Returns:
            The phrase; None if none is drawn, or if it could be the subject.
        """
        if not self.chance(probability):
            return None
        if self.chance(0.25):
            if is_named(subject):
                return None
            return Phrase(self.pick(lexicon.names("person")))
        pronoun = self.pick(PRONOUNS)
        if subject is not None and _may_be_one_person(subject.head, pronoun):
            return None
        return pronoun_phrase(pronoun)

    def location(self, classes: tuple[str, ...], relation: str) -> Place:
        """Draw a place.

        Args:
            classes: The classes of nouns that it can be, or `city` for cities and countries. A
                class may end with `!`, as in the table of verbs.
            relation: `at`, `to` or `from`.
        """
        classes = tuple(name.rstrip("!") for name in classes)
        if "city" in classes and (len(classes) == 1 or self.chance(0.72)):
            return Place(relation, Phrase(self.pick(lexicon.names("city", "country"))))
        head = self.pick(lexicon.nouns(*classes))
        if relation == "at" and "home" in classes and self.chance(0.25):
            preposition = self.pick(lexicon.prepositions("where"))
            return Place("at", Phrase(head, "the"), preposition)
        # If the French preposition is "à", only "the" sounds natural: "à la gare".
        if head.preposition("fr", "at") == "à":
            determiner = "the"
        else:
            determiner = self.weighted(the=0.7, this=0.12, a=0.18)
        return Place(relation, Phrase(head, determiner, adjective=self.adjective(head, 0.25)))


def _may_be_one_person(subject: Noun | Name | Pronoun, pronoun: Pronoun) -> bool:
    """Return whether a subject and a pronoun may be one person, as in "I see me" or "I see us".

    Such sentences would need a reflexive pronoun. "He sees him" is allowed: these are two persons.
    """
    if not isinstance(subject, Pronoun):
        return False
    if subject.person == pronoun.person:
        return subject not in (lexicon.HE, lexicon.SHE)
    return {subject, pronoun} == {lexicon.PRONOUN_I, lexicon.WE}
