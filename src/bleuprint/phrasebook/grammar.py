"""What the phrasebook can say: trees without a language, drawn at random, the same ones always."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from bleuprint.files import whole_file
from bleuprint.phrasebook import english, french, german
from bleuprint.phrasebook.lexicon import (
    Adjective,
    Modal,
    Name,
    Noun,
    Preposition,
    Pronoun,
    Verb,
    Weather,
    Words,
    adjectives,
    adverbs,
    direct,
    lexicon,
    names,
    nouns,
    verbs,
)

LANGUAGES = ("en", "de", "fr")
SPLITS = {"train": 14_000, "valid": 500, "test": 500}
SEED = 1729
LONGEST = 22  # English words
LEXICON = lexicon()
Item = TypeVar("Item")
Triple = tuple[str, str, str]


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
    """At, to or from somewhere; without `preposition` the noun knows its own."""

    relation: str
    phrase: Phrase
    preposition: Preposition | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """A verb and its company. `subject` is missing where a relative pronoun or "who" has its
    place, the object where `gap` says so; the `gap_` fields describe what stands for them."""

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


class Dice:
    """All chance comes from here, through the one draw that Python keeps the same for ever."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        return self.draw() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        """The earlier an item stands, the likelier: three to one from the first to the last."""
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


class Phrases(Dice):
    """Draws noun phrases and places."""

    def relative(self, head: Noun, plural: bool) -> Clause | None:
        """Clauses are drawn by the subclass."""
        raise NotImplementedError

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


class Writer(Phrases):
    """Draws clauses and sentences."""

    def relative(self, head: Noun, plural: bool) -> Clause | None:
        """A clause about `head`, which is its subject or its object."""
        kind, found = head.classes[0], direct(head.classes)
        if kind == "person" and self.chance(0.55):
            verb = self.pick(verbs("acting"))
            if "person" not in verb.subject:
                return None
            clause = self.clause(verb, pronoun(head.sex, plural), simple=True)
            clause = replace(clause, subject=None)
        elif found and self.chance(0.75):
            subject = self.subject(("person",), relative=0)
            clause = self.clause(self.pick(found), subject, simple=True)
            clause = replace(clause, gap="object", object=None)
        else:
            fitting = adjectives(kind, True)
            if not fitting:
                return None
            tense = self.weighted(present=0.7, past=0.3)
            clause = Clause(verbs("copula")[0], None, tense, adjective=self.pick(fitting))
        return replace(clause, gap_plural=plural, gap_gender=head.fr_gender)

    def clause(
        self,
        verb: Verb,
        subject: Phrase | None = None,
        simple: bool = False,
        tense: str = "",
        asking: bool = False,
    ) -> Clause:
        """An ordinary clause with `verb`; a simple one has no adverbs and nothing nested."""
        subject = subject or self.subject(verb.subject, 0 if simple else 0.18)
        modals = LEXICON.modals[:2] if tense == "past" else LEXICON.modals
        tense = tense or self.tense(verb, simple)
        modal = None
        wanted = not {"state", "past"} & {*verb.traits} and kind_of(subject) == "person"
        if wanted and tense in ("present", "past") and self.chance(0.22):
            modal = self.pick(modals)
            tense = tense if modal.en_past else "present"
        negative = self.chance(0.16) and (modal is None or bool(modal.negative))
        plain = tense in ("present", "past") and not (modal or negative or asking)
        if plain and verb.en == verb.en_past and Clause(verb, subject).person != 2:
            tense = "future"  # "I read": when?
        clause = Clause(verb, subject, tense, modal=modal)
        clause = self.with_objects(clause, negative, 0 if simple else 0.14)
        clause = self.with_place(clause, 0.15 if simple else 0.42)
        return clause if simple else self.with_adverbs(clause)

    def tense(self, verb: Verb, simple: bool) -> str:
        if "state" in verb.traits:
            return self.weighted(present=0.6, past=0.4 * ("past" in verb.traits))
        progressive = 0 if simple or "past" in verb.traits else 0.16
        return self.weighted(present=0.36, past=0.38, future=0.14, progressive=progressive)

    def with_objects(self, clause: Clause, negative: bool, relative: float) -> Clause:
        verb, subject, target, recipient = clause.verb, clause.subject, None, None
        if verb.object:
            target = self.other_than(subject, 0.35) if "person" in verb.object else None
            target = target or self.phrase(verb.object, owner=subject, relative=relative)
            quantified = target.count or target.det in ("many", "some", "every")
            negative = negative and not (quantified and len(verb.government) == 1)
        if "to" in verb.traits:
            recipient = self.other_than(subject, 0.5)
            recipient = recipient or self.phrase(("person",), subject, True, relative)
        return replace(clause, object=target, recipient=recipient, negative=negative)

    def with_place(self, clause: Clause, probability: float) -> Clause:
        kinds = clause.verb.place
        if not kinds or not (kinds[-1].endswith("!") or self.chance(probability)):
            return clause
        relation, _, first = kinds[0].rpartition(":")
        return replace(clause, place=self.place((first, *kinds[1:]), relation or "at"))

    def with_adverbs(self, clause: Clause) -> Clause:
        verb, tense = clause.verb, clause.tense
        state, sudden = "state" in verb.traits, "past" in verb.traits
        people = clause.subject is not None and kind_of(clause.subject) == "person"
        free = not clause.modal and not clause.negative and tense in ("present", "past")
        if free and self.chance(0.16):
            clause = replace(clause, frequency=self.pick(adverbs("frequency")))
        elif not state and tense != "progressive" and self.chance(0.5):
            clause = self.with_time(clause)
        if "travel" in verb.traits and people and self.chance(0.35):
            clause = replace(clause, manner=self.pick(adverbs("travel")))
        elif not (state or sudden or clause.negative) and people and self.chance(0.12):
            clause = replace(clause, manner=self.pick(adverbs("manner")))
        elif "together" in verb.traits and people and self.chance(0.25):
            clause = replace(clause, companion=self.companion(clause.subject))
        if tense != "progressive" and "to:" in "".join(verb.place) and self.chance(0.4):
            clause = replace(clause, purpose=self.task(clause.subject))
        return clause

    def with_time(self, clause: Clause) -> Clause:
        kind = "future" if clause.modal and clause.tense == "present" else clause.tense
        time = self.pick(adverbs("clock" if self.chance(0.2) else kind))
        fronted = time.kind != "clock" and self.chance(0.4)
        return replace(clause, time=time, fronted=fronted)

    def companion(self, subject: Phrase | None) -> tuple[Preposition, Phrase]:
        ways = tuple(p for p in LEXICON.prepositions if p.kind == "companion")
        other = self.other_than(subject, 0.4) or self.owned(
            self.pick(nouns(("kin",))), False, subject, 0
        )
        return self.pick(ways), other

    def task(self, subject: Phrase | None) -> Clause:
        """What is tried or intended: an infinitive with its objects."""
        verb = self.pick(verbs("doing"))
        while "person" not in verb.subject or not (verb.object or verb.prefix):
            verb = self.pick(verbs("doing"))
        clause = self.with_objects(Clause(verb, subject), False, 0)
        return self.with_place(clause, 0.2)

    def person_clause(self, subject: Phrase | None = None, tense: str = "") -> Clause:
        verb = self.pick(verbs("doing"))
        while "person" not in verb.subject:
            verb = self.pick(verbs("doing"))
        return self.clause(verb, subject, tense=tense)

    def ordinary(self) -> Clause:
        return self.clause(self.pick(verbs("acting")))

    def copula(self, subject: Phrase | None = None, state: bool = False) -> Clause:
        """To be: old, older than, a baker, somewhere."""
        kinds = ("animal", "thing", "wear", "text", "vehicle", "place", "event", "part", "food")
        subject = subject or self.subject(("person",) if self.chance(0.55) else kinds)
        verb, tense = verbs("copula")[0], self.weighted(present=0.6, past=0.4)
        clause = Clause(verb, subject, tense, negative=self.chance(0.18))
        kind = kind_of(subject)
        fitting = adjectives("state" if state else kind, True)
        one = kind == "person" and not state and not subject.other
        form = self.weighted(plain=0.5, more=0.25, role=0.12 * one, place=0.2 * one)
        if form == "role" and not (
            isinstance(subject.head, Noun) and "prof" in subject.head.classes
        ):
            sex = subject.head.sex or "m"
            role = self.pick(tuple(noun for noun in nouns(("prof",)) if noun.sex == sex))
            return replace(clause, object=Phrase(role, "role", subject.plural))
        if form == "place":
            return replace(clause, place=self.place(("spot", "home", "room", "city"), "at"))
        adjective = self.pick(fitting)
        if form != "more" or state or not adjective.en_more:
            timely = tense == "past" and "state" in adjective.classes and self.chance(0.4)
            time = self.pick(adverbs(tense)) if timely else None
            return replace(clause, adjective=adjective, time=time)
        if kind == "person" and self.chance(0.5) and not self.named(subject):
            return replace(clause, adjective=adjective, than=Phrase(self.pick(names("person"))))
        head = self.pick(nouns(("kin",) if kind == "person" else (kind,)))
        if "mass" in head.classes or " " in head.en:
            return replace(clause, adjective=adjective)
        than = self.owned(head, False, subject, 0) if kind == "person" else Phrase(head, "the")
        return replace(clause, adjective=adjective, than=than)

    def existence(self) -> Clause:
        """There is something somewhere."""
        head = self.pick(nouns(("animal", "person", "small", "wood", "ride", "event", "plant")))
        while "kin" in head.classes:
            head = self.pick(nouns(("animal", "person")))
        plural = self.chance(0.4)
        det = self.weighted(bare=0.4, many=0.4, some=0.2) if plural else "a"
        count = self.pick(LEXICON.numbers[:11]) if det == "bare" and self.chance(0.7) else None
        target = Phrase(head, det, plural, count, self.adjective(head, 0.3))
        if "small" in head.classes:
            on = self.pick(tuple(p for p in LEXICON.prepositions if p.kind == "under"))
            furniture = Phrase(self.pick(nouns(("wood",))), "the")
            place = Place("at", furniture, on)
        else:
            outside = head.classes[0] in ("animal", "vehicle", "plant")
            place = self.place(("spot",) if outside else ("spot", "home", "work"), "at")
        tense = self.weighted(present=0.6, past=0.4)
        negative = (det == "a" or not (count or det != "bare")) and self.chance(0.25)
        time = self.pick(adverbs(tense)) if not negative and self.chance(0.12) else None
        return Clause(
            verbs("exist")[0], None, tense, target, time=time, place=place, negative=negative
        )

    def measured(self) -> Clause:
        """Verbs with a fixed complement: ages, prices, games, languages."""
        trait = self.weighted(age=1.5, price=1.8, hunger=0.6, lack=0.7, play=1.2, speak=0.8)
        verb = verbs(trait)[0]
        if trait == "price":
            number = self.pick(LEXICON.numbers[11:])
            cost = Words(f"{number.en} euros", f"{number.de} Euro", f"{number.fr} euros", "")
            thing = self.phrase(verb.subject, definite=True)
            return Clause(verb, thing, complement=cost)
        subject = self.subject(("person",))
        if trait == "age":
            head = subject.head
            young = isinstance(head, Pronoun) or "child" in getattr(head, "classes", ())
            n = self.pick(LEXICON.numbers[:11] if young else LEXICON.numbers[11:-3])
            age = Words(f"{n.en} years old", f"{n.de} Jahre alt", f"{n.fr} ans", "")
            return Clause(verb, subject, self.weighted(present=0.7, past=0.3), complement=age)
        return self.complemented(trait, subject)

    def complemented(self, trait: str, subject: Phrase | None) -> Clause:
        verb = verbs(trait)[0]
        choice = self.pick(tuple(c for c in LEXICON.complements if c.kind == trait))
        if trait != "play":
            tense = self.weighted(present=0.7, past=0.3 * (trait != "speak"))
            return Clause(verb, subject, tense, complement=choice)
        tense = self.weighted(present=0.4, past=0.3, future=0.3)
        clause = self.with_place(Clause(verb, subject, tense, complement=choice), 0.3)
        return self.with_time(clause) if self.chance(0.5) else clause

    def undertaking(self) -> Clause:
        """To try, decide, promise, forget or begin to do something."""
        verb = self.pick(verbs("inf:"))
        subject = self.subject(("person",))
        tense = self.weighted(present=0.4, past=0.6)
        negative = tense == "past" and verb.en in ("try", "forget") and self.chance(0.25)
        task = self.task(subject)
        return Clause(verb, subject, tense, negative=negative, infinitive=task)

    def again(self, subject: Phrase | None) -> Phrase | None:
        """The subject of a second clause: mostly the first one, now as a pronoun."""
        if subject is None or not self.chance(0.75):
            return None
        if isinstance(subject.head, Pronoun):
            return subject
        women = subject.plural and french.gender(subject) == "f"  # "they" is "ils", never "elles"
        known = kind_of(subject) == "person" and not women and (subject.plural or subject.head.sex)
        return pronoun(subject.head.sex, subject.plural) if known else None

    def reason(self, subject: Phrase | None, past: bool) -> Clause | Weather:
        """What may follow because, if and when."""
        about = self.again(subject)
        kind = self.weighted(state=0.28, weather=0.22, lack=0.1, hunger=0.05, modal=0.35)
        if kind == "weather" and not past:
            return self.pick(LEXICON.weather)
        if kind in ("state", "weather"):
            state = self.copula(about or self.subject(("person",), 0), state=True)
            return replace(state, time=None, tense="past" if past else "present")
        if kind in ("lack", "hunger"):
            clause = self.complemented(kind, about or self.subject(("person",), 0))
            return replace(clause, tense="past" if past else "present")
        clause = replace(self.person_clause(about, "future"), fronted=False, purpose=None)
        modal = self.pick(LEXICON.modals[:2] if past else LEXICON.modals[:4])
        tense = "past" if past else "present"
        return replace(clause, tense=tense, modal=modal, negative=False, time=None)

    def complex(self) -> Sentence:
        kind = self.weighted(
            reason=3, condition=3, moment=1, meanwhile=1, that=3, whether=0.6, join=1.6
        )  # fmt: skip
        link = self.pick(tuple(c for c in LEXICON.conjunctions if c.kind == kind))
        if kind in ("that", "whether"):
            verb = self.pick([v for v in verbs("that") if kind == "that" or v.en == "know"])
            subject = self.subject(("person",), 0)
            second = self.person_clause(self.again(subject))
            second = replace(second, fronted=False, purpose=None)
            return Sentence(Clause(verb, subject, negative=kind == "whether"), "", link, second)
        tense = {"moment": "past", "meanwhile": "present"}.get(kind, "")
        if kind == "condition":
            tense = self.weighted(future=1, present=1)
        clause = replace(self.person_clause(None, tense), purpose=None)
        first = kind in ("condition", "moment", "meanwhile") and self.chance(0.6)
        clause = replace(clause, fronted=clause.fronted and not first)
        if kind in ("reason", "condition"):
            return Sentence(
                clause, "", link, self.reason(clause.subject, clause.tense == "past"), first
            )
        about = self.again(clause.subject) if kind == "moment" else None
        second = self.person_clause(about, tense)
        if kind in ("moment", "meanwhile"):
            second = replace(second, time=None)
        return Sentence(clause, "", link, replace(second, fronted=False, purpose=None), first)

    def question(self) -> Sentence:
        ask = self.weighted(yesno=5, who=1.2, what=1.5, whom=1, where=1.2, when=1, why=1.4)
        if ask == "yesno" and self.chance(0.35):
            return Sentence(self.copula(), ask)
        verb = self.pick([verb for verb in verbs("acting") if answers(verb, ask)])
        subject = self.subject(verb.subject, 0)
        if ask == "who":
            subject = Phrase(LEXICON.pronouns[2])
        clause = replace(self.clause(verb, subject, asking=True), fronted=False)
        if ask == "who":
            return Sentence(replace(clause, subject=None), ask)
        if ask in ("what", "whom"):
            return Sentence(replace(clause, object=None, negative=False), ask)
        if ask == "where":
            return Sentence(replace(clause, place=None, purpose=None, negative=False), ask)
        if ask == "when":
            tense = "future" if clause.tense == "progressive" else clause.tense
            clause = replace(clause, tense=tense)
            return Sentence(replace(clause, time=None, frequency=None, negative=False), ask)
        return Sentence(clause, ask)

    def sentence(self) -> Sentence:
        kind = self.weighted(
            ordinary=0.36, copula=0.09, existence=0.035, measured=0.055,
            undertaking=0.06, complex=0.3, question=0.13,
        )  # fmt: skip
        if kind == "complex":
            return self.complex()
        if kind == "question":
            return self.question()
        draw = {
            "ordinary": self.ordinary,
            "copula": self.copula,
            "existence": self.existence,
            "measured": self.measured,
            "undertaking": self.undertaking,
        }
        return Sentence(draw[kind]())


def answers(verb: Verb, ask: str) -> bool:
    """Whether a question word can take a place in a clause with `verb`."""
    if ask == "who":
        return "person" in verb.subject
    if ask in ("what", "whom"):
        plain = len(verb.government) == 1 and verb.fr_government in ("", "à*")
        return plain and bool(verb.object) and ("person" in verb.object) == (ask == "whom")
    if ask == "where":
        return bool(verb.place) and ":" not in verb.place[0]
    return "state" not in verb.traits


def generate(split: str) -> tuple[Triple, ...]:
    """The sentences of a split, each in English, German and French."""
    if split not in SPLITS:
        raise ValueError(f"no split {split!r}: choose from {', '.join(SPLITS)}")
    return _corpus()[split]


def sentences(split: str, language: str) -> Iterator[str]:
    """The sentences of a split in one language; line by line, the languages translate each
    other."""
    rows = generate(split)
    if language not in LANGUAGES:
        raise ValueError(f"no language {language!r}: choose from {', '.join(LANGUAGES)}")
    column = LANGUAGES.index(language)
    return (row[column] for row in rows)


def write(split: str, language: str, path: Path) -> None:
    """Write a split in one language, a sentence a line."""
    lines = sentences(split, language)
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


@cache
def _corpus() -> dict[str, tuple[Triple, ...]]:
    """Every split, from one stream, so that all have one distribution.

    No sentence comes twice, in none of the languages.
    """
    writer = Writer(SEED)
    seen: tuple[set[str], ...] = (set(), set(), set())
    rows: list[Triple] = []
    while len(rows) < sum(SPLITS.values()):
        tree = writer.sentence()
        row = english.sentence(tree), german.sentence(tree), french.sentence(tree)
        pairs = tuple(zip(row, seen, strict=True))
        if 1 < row[0].count(" ") < LONGEST and all(text not in texts for text, texts in pairs):
            rows.append(row)
            for text, texts in pairs:
                texts.add(text)
    every = sum(SPLITS.values()) // SPLITS["valid"]
    train = tuple(row for place, row in enumerate(rows) if place % every > 1)
    return {"train": train, "valid": tuple(rows[::every]), "test": tuple(rows[1::every])}
