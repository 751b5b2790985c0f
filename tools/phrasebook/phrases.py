"""Noun phrases and places, drawn at random from a seed."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from tools.phrasebook.lexicon import (
    NOTHING,
    NUMBERS,
    PRONOUNS,
    Adjective,
    Name,
    Noun,
    Pronoun,
    adjectives,
    names,
    nouns,
    prepositions,
)
from tools.phrasebook.trees import Clause, Phrase, Place

Item = TypeVar("Item")


class Dice:
    """The only source of chance: `random()`, the one method that Python never changes."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        return self.draw() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        """A random item; the first is three times as likely as the last."""
        draw = self.draw()
        return items[int(len(items) * draw * (1 + draw) / 2)]

    def weighted(self, **weights: float) -> str:
        """One of the names. Without `sum`, which rounds differently since Python 3.12."""
        total = 0.0
        for weight in weights.values():
            total += weight
        rest = self.draw() * total
        for name, weight in weights.items():
            rest -= weight
            if rest < 0:
                return name
        return name


def pronoun(sex: str, plural: bool) -> Phrase:
    """They, he or she."""
    return Phrase(PRONOUNS[5 if plural else 2 if sex == "m" else 3], plural=plural)


def kind_of(phrase: Phrase) -> str:
    return phrase.head.classes[0] if isinstance(phrase.head, Noun) else "person"


def is_named(subject: Phrase | None) -> bool:
    return subject is not None and isinstance(subject.head, Name)


class Phrases(Dice, ABC):
    """Draws noun phrases and places; a subclass draws the clauses in them."""

    @abstractmethod
    def relative(self, head: Noun, plural: bool) -> Clause | None:
        """A clause about `head`; None if none fits."""

    def subject(self, classes: tuple[str, ...], relative: float = 0.18) -> Phrase:
        if "person" not in classes or (len(classes) > 1 and self.chance(0.35)):
            others = tuple(c for c in classes if c != "person")
            return self.phrase(others, definite=True, relative=relative)
        kind = self.weighted(pronoun=0.36, name=0.16, couple=0.04, noun=0.44)
        if kind == "pronoun":
            head = self.pick(PRONOUNS)
            return Phrase(head, plural=head.person in "34")
        if kind == "noun":
            return self.phrase(("person",), definite=True, relative=relative)
        name, other = self.pick(names("person")), self.pick(names("person"))
        couple = kind == "couple" and name is not other
        return Phrase(name, plural=couple, other=other if couple else None)

    def phrase(
        self,
        classes: tuple[str, ...],
        owner: Phrase | None = None,
        definite: bool = False,
        relative: float = 0.1,
    ) -> Phrase:
        """A noun of one of the classes with its determiner, owner, adjective and clause.

        `owner`: the phrase that a possessive may refer to.
        """
        head = self.pick(nouns(*classes))
        kind = head.classes[0]
        if "mass" in head.classes:
            det = "the" if definite else self.weighted(bare=0.7, the=0.3)
            return Phrase(head, det, adjective=self.adjective(head, 0.25))
        plural = "one" not in head.classes and self.chance(0.6 if "pair" in head.classes else 0.24)
        if "kin" in head.classes or (kind == "part" and self.chance(0.6)):
            return self.owned(head, plural, owner, relative)
        possible = kind in ("wear", "thing", "text", "vehicle") or "pet" in head.classes
        if possible and self.chance(0.25):
            return self.owned(head, plural, owner, relative)
        det = self.article(plural, definite)
        counted = plural and det in ("the", "bare") and self.chance(0.4)
        count = self.pick(NUMBERS[:11]) if counted else NOTHING
        adjective = self.adjective(head, 0.36)
        clause = None
        if det in ("the", "a") and "cup" not in head.classes and self.chance(relative):
            clause = self.relative(head, plural)
        return Phrase(head, det, plural, count, adjective, None, clause)

    def article(self, plural: bool, definite: bool) -> str:
        if definite:
            if plural:
                return self.weighted(the=0.6, this=0.1, many=0.12, some=0.08, bare=0.1)
            return self.weighted(the=0.72, this=0.14, every=0.04, a=0.1)
        if plural:
            return self.weighted(the=0.35, this=0.08, many=0.1, some=0.1, bare=0.37)
        return self.weighted(the=0.45, this=0.1, a=0.45)

    def adjective(self, head: Noun, probability: float) -> Adjective | None:
        if " " in head.en or not self.chance(probability):
            return None
        fitting = adjectives("drink" if "mass" in head.classes else head.classes[0], False)
        return self.pick(fitting) if fitting else None

    def owned(
        self, head: Noun, plural: bool, subject: Phrase | None, relative: float = 0
    ) -> Phrase:
        """A noun with its owner, which may be the subject."""
        kind = self.weighted(pronoun=0.74, name=0.12, noun=0.14)
        if head.classes[0] == "part":
            owner = Phrase(self.pick(nouns("build")), "the")
        elif kind == "pronoun":
            owner = self.possessor(subject)
        elif kind == "name":
            owner = Phrase(self.pick(names("person")))
        else:
            people = tuple(noun for noun in nouns("person") if "kin" not in noun.classes)
            owner = Phrase(self.pick(people), "the", self.chance(0.2))
        mine = isinstance(owner.head, Pronoun)
        counted = plural and mine and "kin" in head.classes and self.chance(0.5)
        count = self.pick(NUMBERS[:4]) if counted else NOTHING
        adjective = self.adjective(head, 0.28)
        clause = self.relative(head, plural) if mine and self.chance(relative / 2) else None
        return Phrase(head, "own", plural, count, adjective, owner, clause)

    def possessor(self, subject: Phrase | None) -> Phrase:
        if subject is not None and self.chance(0.6):
            if isinstance(subject.head, Pronoun):
                return subject
            if subject.plural or subject.head.sex:
                return pronoun(subject.head.sex, subject.plural)
        return Phrase(self.pick(PRONOUNS))

    def other_than(self, subject: Phrase | None, probability: float) -> Phrase | None:
        """A pronoun or a name that differs from the subject."""
        if not self.chance(probability):
            return None
        if self.chance(0.25):
            return Phrase(self.pick(names("person"))) if not is_named(subject) else None
        head = self.pick(PRONOUNS)
        used = subject.head.person if subject and isinstance(subject.head, Pronoun) else ""
        clash = used == head.person != "2" or used + head.person in ("03", "30")
        return None if clash else Phrase(head, plural=head.person in "34")

    def place(self, kinds: tuple[str, ...], relation: str) -> Place:
        classes = tuple(kind.rstrip("!") for kind in kinds)
        if "city" in classes and (len(classes) == 1 or self.chance(0.72)):
            return Place(relation, Phrase(self.pick(names("city", "country"))))
        head = self.pick(nouns(*classes))
        if relation == "at" and "home" in classes and self.chance(0.25):
            return Place("at", Phrase(head, "the"), self.pick(prepositions("where")))
        det = "the" if head.place[5] == "à" else self.weighted(the=0.7, this=0.12, a=0.18)
        return Place(relation, Phrase(head, det, adjective=self.adjective(head, 0.25)))
