"""Noun phrases and places, drawn at random, the same ones always."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from bleuprint.corpus.phrasebook.lexicon import (
    Adjective,
    Name,
    Noun,
    Pronoun,
    adjectives,
    lexicon,
    names,
    nouns,
)
from bleuprint.corpus.phrasebook.trees import Clause, Phrase, Place

LEXICON = lexicon()
Item = TypeVar("Item")


class Dice:
    """All chance comes from here, through the one draw that Python keeps the same for ever."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        return self.draw() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        """A random item; the first is three times as likely as the last."""
        draw = self.draw()
        return items[int(len(items) * draw * (1 + draw) / 2)]

    def weighted(self, **weights: float) -> str:
        """One of the names. Added up one by one: `sum` rounds otherwise since Python 3.12."""
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
    return Phrase(LEXICON.pronouns[5 if plural else 2 if sex == "m" else 3], plural=plural)


def person_of(phrase: Phrase | None) -> str:
    return phrase.head.person if phrase and isinstance(phrase.head, Pronoun) else ""


def kind_of(phrase: Phrase) -> str:
    return phrase.head.classes[0] if isinstance(phrase.head, Noun) else "person"


class Phrases(Dice, ABC):
    """Draws noun phrases and places; the clauses in them are the subclass's."""

    @abstractmethod
    def relative(self, head: Noun, plural: bool) -> Clause | None:
        """A clause about `head`; None where there is none to fit it."""

    def subject(self, classes: tuple[str, ...], relative: float = 0.18) -> Phrase:
        if "person" not in classes or (len(classes) > 1 and self.chance(0.35)):
            others = tuple(c for c in classes if c != "person")
            return self.phrase(others, definite=True, relative=relative)
        kind = self.weighted(pronoun=0.36, name=0.16, couple=0.04, noun=0.44)
        if kind == "pronoun":
            head = self.pick(LEXICON.pronouns)
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
        """A noun of one of the classes with what belongs to it; `owner` is who may have it."""
        head = self.pick(nouns(classes))
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
        count = self.pick(LEXICON.numbers[:11]) if counted else None
        adjective = self.adjective(head, 0.36)
        clause = None
        if det in ("the", "a") and "cup" not in head.classes and self.chance(relative):
            clause = self.relative(head, plural)
        if det == "a" and plural:
            det = "bare"
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
        found = adjectives("drink" if "mass" in head.classes else head.classes[0], False)
        return self.pick(found) if found else None

    def owned(self, head: Noun, plural: bool, owner: Phrase | None, relative: float) -> Phrase:
        by = self.weighted(pronoun=0.74, name=0.12, noun=0.14)
        if head.classes[0] == "part":
            holder = Phrase(self.pick(nouns(("build",))), "the", adjective=None)
        elif by == "pronoun":
            holder = self.possessor(owner)
        elif by == "name":
            holder = Phrase(self.pick(names("person")))
        else:
            people = tuple(noun for noun in nouns(("person",)) if "kin" not in noun.classes)
            holder = Phrase(self.pick(people), "the", self.chance(0.2))
        mine = isinstance(holder.head, Pronoun)
        counted = plural and mine and "kin" in head.classes and self.chance(0.5)
        count = self.pick(LEXICON.numbers[:4]) if counted else None
        adjective = self.adjective(head, 0.28)
        clause = self.relative(head, plural) if mine and self.chance(relative / 2) else None
        return Phrase(head, "own", plural, count, adjective, holder, clause)

    def possessor(self, owner: Phrase | None) -> Phrase:
        if owner is not None and self.chance(0.6):
            if isinstance(owner.head, Pronoun):
                return owner
            if owner.plural or owner.head.sex:
                return pronoun(owner.head.sex, owner.plural)
        return Phrase(self.pick(LEXICON.pronouns))

    def other_than(self, subject: Phrase | None, probability: float) -> Phrase | None:
        """A pronoun or a name that is not the subject over again."""
        if not self.chance(probability):
            return None
        if self.chance(0.25):
            return Phrase(self.pick(names("person"))) if not self.named(subject) else None
        head = self.pick(LEXICON.pronouns)
        used, person = person_of(subject), head.person
        clash = used == person != "2" or used + person in ("03", "30")
        return None if clash else Phrase(head, plural=person in "34")

    def named(self, subject: Phrase | None) -> bool:
        return subject is not None and isinstance(subject.head, Name)

    def place(self, kinds: tuple[str, ...], relation: str) -> Place:
        classes = tuple(kind.rstrip("!") for kind in kinds)
        if "city" in classes and (len(classes) == 1 or self.chance(0.72)):
            return Place(relation, Phrase(self.pick(names("city", "country"))))
        head = self.pick(nouns(classes))
        if relation == "at" and "home" in classes and self.chance(0.25):
            where = tuple(p for p in LEXICON.prepositions if p.kind == "where")
            return Place("at", Phrase(head, "the"), self.pick(where))
        det = "the" if head.place[5] == "à" else self.weighted(the=0.7, this=0.12, a=0.18)
        adjective = self.adjective(head, 0.25)
        return Place(relation, Phrase(head, det, adjective=adjective))
