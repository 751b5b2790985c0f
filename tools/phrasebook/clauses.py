"""Draw clauses at random: a verb with its subject, objects, adverbs and places."""

from __future__ import annotations

from dataclasses import replace

from tools.phrasebook import lexicon
from tools.phrasebook.lexicon import LARGE_NUMBERS, NOTHING, SMALL_NUMBERS, Noun, Pronoun, Verb
from tools.phrasebook.phrases import (
    RELATIVE_IN_SUBJECT,
    Phrases,
    is_named,
    kind_of,
    third_person,
)
from tools.phrasebook.trees import Clause, Phrase, Place

# The kinds of nouns that are not persons.
KINDS = ("animal", "thing", "wear", "text", "vehicle", "place", "event", "part", "food")
# How often an object that can have a relative clause has one.
RELATIVE_IN_OBJECT = 0.14
# The large numbers end with 99, 120 and 250: these are prices, but nobody's age.
AGES_OF_ADULTS = LARGE_NUMBERS[:-3]


class Clauses(Phrases):
    """Draws clauses.

    A simple clause has no adverbs and no relative clauses in it: it is a relative clause itself.
    """

    def relative_clause(self, head: Noun, *, is_plural: bool) -> Clause | None:
        """Draw a relative clause about a noun, such as "who reads" or "that she likes".

        The relative pronoun is the subject or the object of the clause. So the clause has a gap in
        this place: its subject or object is None.

        Args:
            head: The noun.
            is_plural: Whether the noun is plural.

        Returns:
            The clause; None if the verb that was drawn does not fit.
        """
        kind = head.classes[0]
        transitive_verbs = lexicon.verbs_with_direct_object(head.classes)
        if kind == "person" and self.chance(0.55):
            verb = self.pick(lexicon.ordinary_verbs())
            if "person" not in verb.subject:
                return None
            # With he, she or they as the subject, a clause that fits is drawn. Then "who" takes
            # the place of the pronoun.
            clause = self.clause(verb, third_person(head.sex, is_plural=is_plural), is_simple=True)
            clause = replace(clause, subject=None)
        elif transitive_verbs and self.chance(0.75):
            subject = self.subject(("person",), relative_probability=0)
            clause = self.clause(self.pick(transitive_verbs), subject, is_simple=True)
            clause = replace(clause, gap="object", object=None)
        else:
            tense = self.weighted(present=0.7, past=0.3)
            adjective = self.pick(lexicon.adjectives(kind, is_after_verb=True))
            clause = Clause(_to_be(), None, tense, adjective=adjective)
        return replace(clause, is_gap_plural=is_plural, gap_gender=head.fr_gender)

    def clause(
        self,
        verb: Verb,
        subject: Phrase | None = None,
        *,
        is_simple: bool = False,
        tense: str = "",
        is_question: bool = False,
    ) -> Clause:
        """Draw an ordinary clause with a verb: subject, tense, objects, place and adverbs.

        The combinations are limited to those that mean the same in all languages.

        Args:
            verb: The verb.
            subject: The subject; None to draw one.
            is_simple: Whether adverbs and relative clauses are left out.
            tense: The tense; empty to draw one.
            is_question: Whether the clause becomes a question.
        """
        if subject is None:
            subject = self.subject(verb.subject, 0 if is_simple else RELATIVE_IN_SUBJECT)
        # If the caller requires the past, only modal verbs that have a past can be drawn.
        modals = lexicon.modals_with_past() if tense == "past" else lexicon.MODALS
        if not tense:
            tense = self._tense(verb, is_simple=is_simple)
        modal = None
        is_activity = "state" not in verb.traits and "past" not in verb.traits
        can_have_modal = is_activity and kind_of(subject) == "person"
        if can_have_modal and tense in ("present", "past") and self.chance(0.22):
            modal = self.pick(modals)
            if not modal.en_past:
                tense = "present"
        is_negated = self.chance(0.16)
        if modal is not None and not modal.negative:
            is_negated = False
        # "I read" may be present or past, and the translations could differ. Unless an auxiliary
        # verb shows the tense ("I did not read"), such a clause is put into the future.
        has_auxiliary = modal is not None or is_negated or is_question
        shows_no_tense = verb.en == verb.en_past and not _is_third_singular(subject)
        if tense in ("present", "past") and not has_auxiliary and shows_no_tense:
            tense = "future"
        clause = Clause(verb, subject, tense, modal=modal)
        clause = self._with_objects(
            clause,
            is_negated=is_negated,
            relative_probability=0 if is_simple else RELATIVE_IN_OBJECT,
        )
        clause = self._with_place(clause, 0.15 if is_simple else 0.42)
        if is_simple:
            return clause
        return self._with_adverbs(clause)

    def _tense(self, verb: Verb, *, is_simple: bool) -> str:
        """Draw a tense, except those in which languages use the verb differently (weight 0)."""
        if "state" in verb.traits:
            past_weight = 0.4 if "past" in verb.traits else 0
            return self.weighted(present=0.6, past=past_weight)
        has_progressive = not is_simple and "past" not in verb.traits
        progressive_weight = 0.16 if has_progressive else 0
        return self.weighted(
            present=0.36,
            past=0.38,
            future=0.14,
            progressive=progressive_weight,
        )

    def _with_objects(
        self, clause: Clause, *, is_negated: bool, relative_probability: float
    ) -> Clause:
        """Draw the object and the recipient that the verb of a clause requires.

        Args:
            clause: The clause without them.
            is_negated: Whether to negate the clause. This is ignored for an object such as "many
                books", since languages translate "not many" differently.
            relative_probability: How often an object has a relative clause.
        """
        verb = clause.verb
        subject = clause.subject
        target = None
        if verb.object:
            if "person" in verb.object:
                target = self.person_other_than(subject, 0.35)
            if target is None:
                target = self.noun_phrase(
                    verb.object, subject, relative_probability=relative_probability
                )
            is_quantified = target.count or target.determiner in ("many", "some", "every")
            if is_quantified and len(verb.government) == 1:
                is_negated = False
        recipient = None
        if "to" in verb.traits:
            recipient = self.person_other_than(subject, 0.5)
            if recipient is None:
                recipient = self.noun_phrase(
                    ("person",),
                    subject,
                    is_definite=True,
                    relative_probability=relative_probability,
                )
        return replace(clause, object=target, recipient=recipient, is_negated=is_negated)

    def _with_place(self, clause: Clause, probability: float) -> Clause:
        """Draw the place of a clause, if its verb can have a place.

        Args:
            clause: The clause without it.
            probability: How often a place is drawn that the verb does not require.
        """
        # The classes of nouns that can be the place. A last one with `!` means: required.
        classes = clause.verb.place
        if not classes:
            return clause
        is_required = classes[-1].endswith("!")
        if not is_required and not self.chance(probability):
            return clause
        # The first class may contain a relation, as in `to:spot` for "goes to".
        relation, _, first_class = classes[0].rpartition(":")
        place = self.location((first_class, *classes[1:]), relation or "at")
        return replace(clause, place=place)

    def _with_adverbs(self, clause: Clause) -> Clause:
        """Draw adverbs for a clause, if its verb allows them.

        These are a time or a frequency ("often"), a manner or a companion ("with Anna"), and a
        purpose ("in order to read").
        """
        traits = clause.verb.traits
        tense = clause.tense
        is_state = "state" in traits
        is_sudden = "past" in traits
        is_about_person = clause.subject is not None and kind_of(clause.subject) == "person"
        is_plain = not clause.modal and not clause.is_negated and tense in ("present", "past")
        if is_plain and self.chance(0.16):
            clause = replace(clause, frequency=self.pick(lexicon.adverbs("frequency")))
        elif not is_state and tense != "progressive" and self.chance(0.5):
            clause = self._with_time(clause)
        can_have_manner = not is_state and not is_sudden and not clause.is_negated
        if "travel" in traits and is_about_person and self.chance(0.35):
            clause = replace(clause, manner=self.pick(lexicon.adverbs("travel")))
        elif can_have_manner and is_about_person and self.chance(0.12):
            clause = replace(clause, manner=self.pick(lexicon.adverbs("manner")))
        elif "together" in traits and is_about_person and self.chance(0.25):
            clause = replace(clause, companion=self._companion(clause.subject))
        has_direction = any(name.startswith("to:") for name in clause.verb.place)
        if tense != "progressive" and has_direction and self.chance(0.4):
            clause = replace(clause, purpose=self._task(clause.subject))
        return clause

    def _with_time(self, clause: Clause) -> Clause:
        """Draw an adverbial of time that fits the tense of a clause."""
        # "I want to go tomorrow": what somebody wants or must do is in the future.
        kind = "future" if clause.modal and clause.tense == "present" else clause.tense
        if self.chance(0.2):
            kind = "clock"
        time = self.pick(lexicon.adverbs(kind))
        is_fronted = time.kind != "clock" and self.chance(0.4)
        return replace(clause, time=time, is_fronted=is_fronted)

    def _companion(self, subject: Phrase | None) -> Place:
        """Draw a companion of a subject, such as "with her brother" or "without Anna"."""
        person = self.person_other_than(subject, 0.4)
        if person is None:
            person = self.owned(self.pick(lexicon.nouns("kin")), subject)
        return Place("at", person, self.pick(lexicon.prepositions("companion")))

    def _task(self, subject: Phrase | None) -> Clause:
        """Draw something that a subject tries or intends: an infinitive with its objects."""
        verb = self._activity()
        # "To read" alone would be a short task, so a verb without an object is drawn again. A verb
        # with a separable prefix may be alone, since German shows the prefix: "aufzustehen".
        while not verb.object and not verb.prefix:
            verb = self._activity()
        task = Clause(verb, subject)
        task = self._with_objects(task, is_negated=False, relative_probability=0)
        return self._with_place(task, 0.2)

    def _activity(self) -> Verb:
        """Draw a verb for something that persons do."""
        while True:
            verb = self.pick(lexicon.activity_verbs())
            if "person" in verb.subject:
                return verb

    def person_clause(self, subject: Phrase | None = None, tense: str = "") -> Clause:
        """Draw a clause about what a person does.

        Args:
            subject: The person; None draws a subject.
            tense: The tense; an empty one is drawn.
        """
        return self.clause(self._activity(), subject, tense=tense)

    def ordinary_clause(self) -> Clause:
        """Draw a clause with any verb of ordinary clauses."""
        return self.clause(self.pick(lexicon.ordinary_verbs()))

    def copula_clause(self, subject: Phrase | None = None, *, is_state: bool = False) -> Clause:
        """Draw a clause with "to be", such as "she is older than Paul" or "he is a baker".

        Args:
            subject: The subject; None draws one.
            is_state: Whether it says how somebody feels, such as tired, and nothing else.
        """
        if subject is None:
            subject = self.subject(("person",) if self.chance(0.55) else KINDS)
        tense = self.weighted(present=0.6, past=0.4)
        clause = Clause(_to_be(), subject, tense, is_negated=self.chance(0.18))
        kind = kind_of(subject)
        adjectives = lexicon.adjectives("state" if is_state else kind, is_after_verb=True)
        is_one_person = kind == "person" and not is_state and subject.second_name is None
        form = self.weighted(
            plain=0.5,
            comparison=0.25,
            role=0.12 if is_one_person else 0,
            place=0.2 if is_one_person else 0,
        )
        # "The doctor is a baker" would be odd.
        if form == "role" and not _is_profession(subject):
            return replace(clause, object=self._role_of(subject))
        if form == "place":
            return replace(clause, place=self.location(("spot", "home", "room", "city"), "at"))
        adjective = self.pick(adjectives)
        clause = replace(clause, adjective=adjective)
        if form == "comparison" and not is_state and adjective.en_more:
            return replace(clause, than=self._compared_phrase(subject))
        if tense == "past" and "state" in adjective.classes and self.chance(0.4):
            return replace(clause, time=self.pick(lexicon.adverbs(tense)))
        return clause

    def _role_of(self, subject: Phrase) -> Phrase:
        """Draw the profession of a person, as in "he is a baker"."""
        sex = subject.head.sex or "m"
        professions = [noun for noun in lexicon.nouns("prof") if noun.sex == sex]
        return Phrase(self.pick(professions), "role", subject.is_plural)

    def _compared_phrase(self, subject: Phrase) -> Phrase | None:
        """Draw what a subject is compared with: "older than her brother".

        Returns:
            The phrase; None if the noun that was drawn does not fit.
        """
        if kind_of(subject) == "person":
            if self.chance(0.5) and not is_named(subject):
                return Phrase(self.pick(lexicon.names("person")))
            nouns = lexicon.nouns("kin")
        else:
            nouns = lexicon.nouns(kind_of(subject))
        head = self.pick(nouns)
        if "mass" in head.classes or " " in head.en:
            return None
        if kind_of(subject) == "person":
            return self.owned(head, subject)
        return Phrase(head, "the")

    def existence_clause(self) -> Clause:
        """Draw a clause that says that there is something somewhere."""
        head = self.pick(
            lexicon.nouns("animal", "person", "small", "wood", "ride", "event", "plant")
        )
        # "There is a brother" needs an owner.
        while "kin" in head.classes:
            head = self.pick(lexicon.nouns("animal", "person"))
        is_plural = self.chance(0.4)
        determiner = self.weighted(bare=0.4, many=0.4, some=0.2) if is_plural else "a"
        count = NOTHING
        if determiner == "bare" and self.chance(0.7):
            count = self.pick(SMALL_NUMBERS)
        target = Phrase(head, determiner, is_plural, count, self.adjective(head, 0.3))
        place = self._place_of_existence(head)
        tense = self.weighted(present=0.6, past=0.4)
        # "There is no dog", "there are no dogs", but neither "no many" nor "no three".
        can_be_negated = determiner == "a" or (determiner == "bare" and not count)
        is_negated = can_be_negated and self.chance(0.25)
        time = NOTHING
        if not is_negated and self.chance(0.12):
            time = self.pick(lexicon.adverbs(tense))
        return Clause(
            lexicon.verbs("exist")[0],
            tense=tense,
            object=target,
            time=time,
            place=place,
            is_negated=is_negated,
        )

    def _place_of_existence(self, head: Noun) -> Place:
        """Draw where something is: small things on or under furniture, animals outside."""
        if "small" in head.classes:
            preposition = self.pick(lexicon.prepositions("under"))
            return Place("at", Phrase(self.pick(lexicon.nouns("wood")), "the"), preposition)
        is_outside = head.classes[0] in ("animal", "vehicle", "plant")
        return self.location(("spot",) if is_outside else ("spot", "home", "work"), "at")

    def measure_clause(self) -> Clause:
        """Draw a clause whose verb has a fixed complement, such as an age, a price or a game."""
        trait = self.weighted(age=1.5, price=1.8, hunger=0.6, lack=0.7, play=1.2, speak=0.8)
        if trait == "price":
            return self._price_clause()
        subject = self.subject(("person",))
        if trait == "age":
            return self._age_clause(subject)
        return self.complement_clause(trait, subject)

    def _price_clause(self) -> Clause:
        """Draw a clause about what something costs."""
        verb = lexicon.verbs("price")[0]
        number = self.pick(LARGE_NUMBERS)
        price = lexicon.Words(
            en=f"{number.en} euros",
            de=f"{number.de} Euro",
            fr=f"{number.fr} euros",
            kind="",
        )
        return Clause(verb, self.noun_phrase(verb.subject, is_definite=True), complement=price)

    def _age_clause(self, subject: Phrase) -> Clause:
        """Draw a clause about the age of a person, which is small if the person may be a child."""
        head = subject.head
        is_child = isinstance(head, Noun) and "child" in head.classes
        is_young = is_child or isinstance(head, Pronoun)
        number = self.pick(SMALL_NUMBERS if is_young else AGES_OF_ADULTS)
        age = lexicon.Words(
            en=f"{number.en} years old",
            de=f"{number.de} Jahre alt",
            fr=f"{number.fr} ans",
            kind="",
        )
        tense = self.weighted(present=0.7, past=0.3)
        return Clause(lexicon.verbs("age")[0], subject, tense, complement=age)

    def complement_clause(self, trait: str, subject: Phrase) -> Clause:
        """Draw a clause with a fixed complement, such as "plays chess" or "has no time".

        Args:
            trait: The kind of verb and complement: `hunger`, `lack`, `play` or `speak`.
            subject: The person.
        """
        verb = lexicon.verbs(trait)[0]
        complement = self.pick(lexicon.complements(trait))
        if trait == "play":
            tense = self.weighted(present=0.4, past=0.3, future=0.3)
            clause = Clause(verb, subject, tense, complement=complement)
            clause = self._with_place(clause, 0.3)
            return self._with_time(clause) if self.chance(0.5) else clause
        # "She spoke German" may mean that she could or that she did, which French tells apart.
        past_weight = 0 if trait == "speak" else 0.3
        tense = self.weighted(present=0.7, past=past_weight)
        return Clause(verb, subject, tense, complement=complement)

    def infinitive_clause(self) -> Clause:
        """Draw a clause about somebody who tries, decides, promises or forgets to do something."""
        verb = self.pick(lexicon.verbs("inf:"))
        subject = self.subject(("person",))
        tense = self.weighted(present=0.4, past=0.6)
        can_be_negated = tense == "past" and verb.en in ("try", "forget")
        is_negated = can_be_negated and self.chance(0.25)
        return Clause(verb, subject, tense, is_negated=is_negated, infinitive=self._task(subject))


def _to_be() -> Verb:
    """Return the verb "to be"."""
    return lexicon.verbs("copula")[0]


def _is_third_singular(subject: Phrase) -> bool:
    """Return whether the English verb of a subject has the ending -s in the present."""
    if isinstance(subject.head, Pronoun):
        return subject.head in (lexicon.HE, lexicon.SHE)
    return not subject.is_plural


def _is_profession(subject: Phrase) -> bool:
    """Return whether a subject is a profession."""
    return isinstance(subject.head, Noun) and "prof" in subject.head.classes
