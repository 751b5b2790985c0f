"""Clauses and sentences, drawn at random from a seed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tools.phrasebook import french, lexicon
from tools.phrasebook.lexicon import NOTHING, Noun, Pronoun, Verb
from tools.phrasebook.phrases import Phrases, is_named, kind_of, pronoun
from tools.phrasebook.trees import Clause, Phrase, Place, Sentence

# What a question word replaces, and what does not go with it.
ASKED_FOR: dict[str, dict[str, Any]] = {
    "who": {"subject": None},
    "what": {"object": None, "negative": False},
    "whom": {"object": None, "negative": False},
    "where": {"place": None, "purpose": None, "negative": False},
    "when": {"time": NOTHING, "frequency": NOTHING, "negative": False},
}
KINDS = ("animal", "thing", "wear", "text", "vehicle", "place", "event", "part", "food")


class Writer(Phrases):
    """Draws clauses and sentences."""

    def relative(self, head: Noun, plural: bool) -> Clause | None:
        """A clause about `head`, which is its subject or its object."""
        kind, transitive = head.classes[0], lexicon.direct(head.classes)
        if kind == "person" and self.chance(0.55):
            verb = self.pick(lexicon.verbs("acting"))
            if "person" not in verb.subject:
                return None
            clause = self.clause(verb, pronoun(head.sex, plural), simple=True)
            clause = replace(clause, subject=None)
        elif transitive and self.chance(0.75):
            subject = self.subject(("person",), relative=0)
            clause = self.clause(self.pick(transitive), subject, simple=True)
            clause = replace(clause, gap="object", object=None)
        else:
            fitting = lexicon.adjectives(kind, True)
            tense = self.weighted(present=0.7, past=0.3)
            clause = Clause(lexicon.verbs("copula")[0], None, tense, adjective=self.pick(fitting))
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
        modals = lexicon.MODALS[:2] if tense == "past" else lexicon.MODALS
        tense = tense or self.tense(verb, simple)
        modal = None
        fits = not {"state", "past"} & {*verb.traits} and kind_of(subject) == "person"
        if fits and tense in ("present", "past") and self.chance(0.22):
            modal = self.pick(modals)
            tense = tense if modal.en_past else "present"
        negative = self.chance(0.16) and (modal is None or bool(modal.negative))
        plain = tense in ("present", "past") and not (modal or negative or asking)
        if plain and verb.en == verb.en_past and Clause(verb, subject).person != 2:
            tense = "future"  # "I read" may be present or past
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
            clause = replace(clause, frequency=self.pick(lexicon.adverbs("frequency")))
        elif not state and tense != "progressive" and self.chance(0.5):
            clause = self.with_time(clause)
        if "travel" in verb.traits and people and self.chance(0.35):
            clause = replace(clause, manner=self.pick(lexicon.adverbs("travel")))
        elif not (state or sudden or clause.negative) and people and self.chance(0.12):
            clause = replace(clause, manner=self.pick(lexicon.adverbs("manner")))
        elif "together" in verb.traits and people and self.chance(0.25):
            clause = replace(clause, companion=self.companion(clause.subject))
        if tense != "progressive" and "to:" in "".join(verb.place) and self.chance(0.4):
            clause = replace(clause, purpose=self.task(clause.subject))
        return clause

    def with_time(self, clause: Clause) -> Clause:
        kind = "future" if clause.modal and clause.tense == "present" else clause.tense
        time = self.pick(lexicon.adverbs("clock" if self.chance(0.2) else kind))
        fronted = time.kind != "clock" and self.chance(0.4)
        return replace(clause, time=time, fronted=fronted)

    def companion(self, subject: Phrase | None) -> Place:
        other = self.other_than(subject, 0.4)
        other = other or self.owned(self.pick(lexicon.nouns("kin")), False, subject)
        return Place("at", other, self.pick(lexicon.prepositions("companion")))

    def task(self, subject: Phrase | None) -> Clause:
        """An action that is tried or intended: an infinitive with its objects."""
        verb = self.action()
        while not (verb.object or verb.prefix):
            verb = self.action()
        return self.with_place(self.with_objects(Clause(verb, subject), False, 0), 0.2)

    def action(self) -> Verb:
        """A verb for something that persons do."""
        verb = self.pick(lexicon.verbs("doing"))
        return verb if "person" in verb.subject else self.action()

    def person_clause(self, subject: Phrase | None = None, tense: str = "") -> Clause:
        return self.clause(self.action(), subject, tense=tense)

    def ordinary(self) -> Clause:
        return self.clause(self.pick(lexicon.verbs("acting")))

    def copula(self, subject: Phrase | None = None, state: bool = False) -> Clause:
        """To be: old, older than, a baker, somewhere."""
        subject = subject or self.subject(("person",) if self.chance(0.55) else KINDS)
        verb, tense = lexicon.verbs("copula")[0], self.weighted(present=0.6, past=0.4)
        clause = Clause(verb, subject, tense, negative=self.chance(0.18))
        kind = kind_of(subject)
        fitting = lexicon.adjectives("state" if state else kind, True)
        one = kind == "person" and not state and not subject.other
        form = self.weighted(plain=0.5, more=0.25, role=0.12 * one, place=0.2 * one)
        if form == "role" and not (
            isinstance(subject.head, Noun) and "prof" in subject.head.classes
        ):
            sex = subject.head.sex or "m"
            role = self.pick([noun for noun in lexicon.nouns("prof") if noun.sex == sex])
            return replace(clause, object=Phrase(role, "role", subject.plural))
        if form == "place":
            return replace(clause, place=self.place(("spot", "home", "room", "city"), "at"))
        adjective = self.pick(fitting)
        if form != "more" or state or not adjective.en_more:
            timely = tense == "past" and "state" in adjective.classes and self.chance(0.4)
            time = self.pick(lexicon.adverbs(tense)) if timely else NOTHING
            return replace(clause, adjective=adjective, time=time)
        if kind == "person" and self.chance(0.5) and not is_named(subject):
            return replace(
                clause, adjective=adjective, than=Phrase(self.pick(lexicon.names("person")))
            )
        head = self.pick(lexicon.nouns("kin" if kind == "person" else kind))
        if "mass" in head.classes or " " in head.en:
            return replace(clause, adjective=adjective)
        than = self.owned(head, False, subject) if kind == "person" else Phrase(head, "the")
        return replace(clause, adjective=adjective, than=than)

    def existence(self) -> Clause:
        """There is something somewhere."""
        head = self.pick(
            lexicon.nouns("animal", "person", "small", "wood", "ride", "event", "plant")
        )
        while "kin" in head.classes:
            head = self.pick(lexicon.nouns("animal", "person"))
        plural = self.chance(0.4)
        det = self.weighted(bare=0.4, many=0.4, some=0.2) if plural else "a"
        count = self.pick(lexicon.NUMBERS[:11]) if det == "bare" and self.chance(0.7) else NOTHING
        target = Phrase(head, det, plural, count, self.adjective(head, 0.3))
        if "small" in head.classes:
            preposition = self.pick(lexicon.prepositions("under"))
            place = Place("at", Phrase(self.pick(lexicon.nouns("wood")), "the"), preposition)
        else:
            outside = head.classes[0] in ("animal", "vehicle", "plant")
            place = self.place(("spot",) if outside else ("spot", "home", "work"), "at")
        tense = self.weighted(present=0.6, past=0.4)
        negative = (det == "a" or not (count or det != "bare")) and self.chance(0.25)
        time = self.pick(lexicon.adverbs(tense)) if not negative and self.chance(0.12) else NOTHING
        return Clause(
            lexicon.verbs("exist")[0],
            None,
            tense,
            target,
            time=time,
            place=place,
            negative=negative,
        )

    def measured(self) -> Clause:
        """Verbs with a fixed complement: ages, prices, games, languages."""
        trait = self.weighted(age=1.5, price=1.8, hunger=0.6, lack=0.7, play=1.2, speak=0.8)
        verb = lexicon.verbs(trait)[0]
        if trait == "price":
            number = self.pick(lexicon.NUMBERS[11:])
            cost = lexicon.Words(
                f"{number.en} euros", f"{number.de} Euro", f"{number.fr} euros", ""
            )
            thing = self.phrase(verb.subject, definite=True)
            return Clause(verb, thing, complement=cost)
        subject = self.subject(("person",))
        if trait == "age":
            head = subject.head
            young = isinstance(head, Pronoun) or "child" in getattr(head, "classes", ())
            n = self.pick(lexicon.NUMBERS[:11] if young else lexicon.NUMBERS[11:-3])
            age = lexicon.Words(f"{n.en} years old", f"{n.de} Jahre alt", f"{n.fr} ans", "")
            return Clause(verb, subject, self.weighted(present=0.7, past=0.3), complement=age)
        return self.complemented(trait, subject)

    def complemented(self, trait: str, subject: Phrase | None) -> Clause:
        verb = lexicon.verbs(trait)[0]
        choice = self.pick([c for c in lexicon.COMPLEMENTS if c.kind == trait])
        if trait != "play":
            tense = self.weighted(present=0.7, past=0.3 * (trait != "speak"))
            return Clause(verb, subject, tense, complement=choice)
        tense = self.weighted(present=0.4, past=0.3, future=0.3)
        clause = self.with_place(Clause(verb, subject, tense, complement=choice), 0.3)
        return self.with_time(clause) if self.chance(0.5) else clause

    def undertaking(self) -> Clause:
        """To try, decide, promise, forget or begin to do something."""
        verb = self.pick(lexicon.verbs("inf:"))
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

    def reason(self, subject: Phrase | None, past: bool) -> Clause | lexicon.Weather:
        """What may follow because, if and when."""
        about = self.again(subject)
        kind = self.weighted(state=0.28, weather=0.22, lack=0.1, hunger=0.05, modal=0.35)
        if kind == "weather" and not past:
            return self.pick(lexicon.WEATHER)
        if kind in ("state", "weather"):
            state = self.copula(about or self.subject(("person",), 0), state=True)
            return replace(state, time=NOTHING, tense="past" if past else "present")
        if kind in ("lack", "hunger"):
            clause = self.complemented(kind, about or self.subject(("person",), 0))
            return replace(clause, tense="past" if past else "present")
        clause = replace(self.person_clause(about, "future"), fronted=False, purpose=None)
        modal = self.pick(lexicon.MODALS[:2] if past else lexicon.MODALS[:4])
        tense = "past" if past else "present"
        return replace(clause, tense=tense, modal=modal, negative=False, time=NOTHING)

    def complex(self) -> Sentence:
        kind = self.weighted(
            reason=3, condition=3, moment=1, meanwhile=1, that=3, whether=0.6, join=1.6
        )  # fmt: skip
        link = self.pick([c for c in lexicon.CONJUNCTIONS if c.kind == kind])
        if kind in ("that", "whether"):
            verb = self.pick([v for v in lexicon.verbs("that") if kind == "that" or v.en == "know"])
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
            second = replace(second, time=NOTHING)
        return Sentence(clause, "", link, replace(second, fronted=False, purpose=None), first)

    def question(self) -> Sentence:
        ask = self.weighted(yesno=5, who=1.2, what=1.5, whom=1, where=1.2, when=1, why=1.4)
        if ask == "yesno" and self.chance(0.35):
            return Sentence(self.copula(), ask)
        verb = self.pick([verb for verb in lexicon.verbs("acting") if answers(verb, ask)])
        subject = self.subject(verb.subject, 0)
        if ask == "who":
            subject = Phrase(lexicon.PRONOUNS[2])
        clause = replace(self.clause(verb, subject, asking=True), fronted=False)
        if ask == "when" and clause.tense == "progressive":
            clause = replace(clause, tense="future")
        return Sentence(replace(clause, **ASKED_FOR.get(ask, {})), ask)

    def sentence(self) -> Sentence:
        kind = self.weighted(
            ordinary=0.36, copula=0.09, existence=0.035, measured=0.055,
            undertaking=0.06, complex=0.3, question=0.13,
        )  # fmt: skip
        if kind == "complex":
            return self.complex()
        if kind == "question":
            return self.question()
        clause: Clause = getattr(self, kind)()
        return Sentence(clause)


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
