"""Draw sentences at random from a seed: the trees that `english`, `german` and `french` write.

`Writer.sentence` draws the next one.
"""

from __future__ import annotations

from dataclasses import replace

from tools.phrasebook import french, lexicon
from tools.phrasebook.clauses import Clauses
from tools.phrasebook.lexicon import NOTHING, Pronoun, Verb
from tools.phrasebook.phrases import kind_of, third_person
from tools.phrasebook.trees import Clause, Phrase, Sentence


class Writer(Clauses):
    """Draws sentences of one or two clauses, and questions."""

    def sentence(self) -> Sentence:
        """Draw the next sentence: first its kind, then a tree of this kind."""
        kind = self.weighted(
            ordinary=0.36,
            copula=0.09,
            existence=0.035,
            measure=0.055,
            infinitive=0.06,
            complex=0.3,
            question=0.13,
        )
        match kind:
            case "ordinary":
                return Sentence(self.ordinary_clause())
            case "copula":
                return Sentence(self.copula_clause())
            case "existence":
                return Sentence(self.existence_clause())
            case "measure":
                return Sentence(self.measure_clause())
            case "infinitive":
                return Sentence(self.infinitive_clause())
            case "complex":
                return self._complex_sentence()
            case _:
                return self._question()

    def _complex_sentence(self) -> Sentence:
        """Draw a sentence of two clauses: first the kind of conjunction, then the conjunction."""
        kind = self.weighted(
            reason=3,
            condition=3,
            moment=1,
            meanwhile=1,
            that=3,
            whether=0.6,
            join=1.6,
        )
        link = self.pick(lexicon.conjunctions(kind))
        match kind:
            case "that" | "whether":
                return self._reported_sentence(link)
            case "reason":
                return self._sentence_with_reason(link, tense="", second_can_be_first=False)
            case "condition":
                tense = self.weighted(future=1, present=1)
                return self._sentence_with_reason(link, tense=tense, second_can_be_first=True)
            case _:
                return self._joined_sentence(link)

    def _reported_sentence(self, link: lexicon.Words) -> Sentence:
        """Draw a sentence about what somebody knows, believes or writes.

        Args:
            link: "that" or "whether".
        """
        # "Whether" only follows "she does not know".
        is_doubt = link.kind == "whether"
        verbs = [verb for verb in lexicon.verbs("that") if not is_doubt or verb.en == "know"]
        verb = self.pick(verbs)
        subject = self.subject(("person",), 0)
        second = self.person_clause(self._subject_again(subject))
        return Sentence(
            Clause(verb, subject, is_negated=is_doubt),
            link=link,
            second=_as_second_clause(second),
        )

    def _sentence_with_reason(
        self, link: lexicon.Words, *, tense: str, second_can_be_first: bool
    ) -> Sentence:
        """Draw a sentence with a reason or a condition.

        Args:
            link: The conjunction, such as "because" or "if".
            tense: The tense of the main clause; an empty one is drawn.
            second_can_be_first: Whether the reason may precede the main clause.
        """
        clause = self.person_clause(tense=tense)
        starts_with_second = second_can_be_first and self.chance(0.6)
        clause = _as_main_clause(clause, starts_with_second=starts_with_second)
        reason = self._reason(clause.subject, is_past=clause.tense == "past")
        return Sentence(clause, link=link, second=reason, starts_with_second=starts_with_second)

    def _joined_sentence(self, link: lexicon.Words) -> Sentence:
        """Draw a sentence about two things that happen after each other or at one time.

        Args:
            link: "when", "while", "and" or "but".
        """
        # "When" (a moment) needs the past, "while" the present; after "and", any tense is possible.
        tense = {"moment": "past", "meanwhile": "present"}.get(link.kind, "")
        clause = self.person_clause(tense=tense)
        starts_with_second = link.kind != "join" and self.chance(0.6)
        clause = _as_main_clause(clause, starts_with_second=starts_with_second)
        subject = self._subject_again(clause.subject) if link.kind == "moment" else None
        second = _as_second_clause(self.person_clause(subject, tense))
        if link.kind != "join":
            second = replace(second, time=NOTHING)
        return Sentence(clause, link=link, second=second, starts_with_second=starts_with_second)

    def _subject_again(self, subject: Phrase | None) -> Phrase | None:
        """Draw whether a second clause has the same subject as the first: "Anna reads and she ...".

        Returns:
            The pronoun for the subject; None if the second clause needs another subject.
        """
        if subject is None or not self.chance(0.75):
            return None
        if isinstance(subject.head, Pronoun):
            return subject
        if kind_of(subject) != "person":
            return None
        # The lexicon has "ils" for "they", but not "elles".
        if subject.is_plural and french.gender(subject) == "f":
            return None
        if not subject.is_plural and not subject.head.sex:
            return None
        return third_person(subject.head.sex, is_plural=subject.is_plural)

    def _reason(self, subject: Phrase | None, *, is_past: bool) -> Clause | lexicon.Weather:
        """Draw the clause after "because", "if" or "when": a state, the weather, a duty and so on.

        Args:
            subject: The subject of the first clause.
            is_past: Whether the first clause is in the past.
        """
        pronoun = self._subject_again(subject)
        kind = self.weighted(state=0.28, weather=0.22, lack=0.1, hunger=0.05, modal=0.35)
        tense = "past" if is_past else "present"
        if kind == "weather" and not is_past:
            return self.pick(lexicon.WEATHER)
        if kind == "modal":
            return self._modal_reason(pronoun, tense)
        if pronoun is None:
            pronoun = self.subject(("person",), 0)
        # The table of the weather has no past: in the past, a state takes its place.
        if kind in ("state", "weather"):
            clause = self.copula_clause(pronoun, is_state=True)
            return replace(clause, time=NOTHING, tense=tense)
        clause = self.complement_clause(kind, pronoun)
        return replace(clause, tense=tense)

    def _modal_reason(self, subject: Phrase | None, tense: str) -> Clause:
        """Draw a clause about what somebody can, wants or must do.

        Args:
            subject: The subject; None draws one.
            tense: `present` or `past`.
        """
        # The clause is drawn in the future, for which `person_clause` adds no modal verb of its
        # own.
        clause = _as_second_clause(self.person_clause(subject, "future"))
        if tense == "past":
            modal = self.pick(lexicon.modals_with_past())
        else:
            # "Because I would like to" would sound incomplete.
            modal = self.pick([modal for modal in lexicon.MODALS if modal.en != "would"])
        return replace(clause, tense=tense, modal=modal, is_negated=False, time=NOTHING)

    def _question(self) -> Sentence:
        """Draw a question."""
        question = self.weighted(yesno=5, who=1.2, what=1.5, whom=1, where=1.2, when=1, why=1.4)
        if question == "yesno" and self.chance(0.35):
            return Sentence(self.copula_clause(), question)
        verbs = [verb for verb in lexicon.ordinary_verbs() if _can_ask(verb, question)]
        verb = self.pick(verbs)
        subject = self.subject(verb.subject, 0)
        if question == "who":
            # The verb after "who" has the same form as after "he".
            subject = Phrase(lexicon.HE)
        clause = replace(self.clause(verb, subject, is_question=True), is_fronted=False)
        if question == "when" and clause.tense == "progressive":
            clause = replace(clause, tense="future")
        return Sentence(_without_answer(clause, question), question)


def _as_main_clause(clause: Clause, *, starts_with_second: bool) -> Clause:
    """Return the first clause of two, with at most one adverbial at the front of the sentence."""
    is_fronted = clause.is_fronted and not starts_with_second
    return replace(clause, purpose=None, is_fronted=is_fronted)


def _as_second_clause(clause: Clause) -> Clause:
    """Return the second clause of two: nothing stands before its subject, and it has no purpose."""
    return replace(clause, is_fronted=False, purpose=None)


def _can_ask(verb: Verb, question: str) -> bool:
    """Return whether a question word can ask for a part of a clause with this verb."""
    match question:
        case "who":
            return "person" in verb.subject
        case "what" | "whom":
            has_preposition = len(verb.government) != 1 or verb.fr_government not in ("", "à*")
            if has_preposition or not verb.object:
                return False
            asks_for_person = question == "whom"
            return ("person" in verb.object) == asks_for_person
        case "where":
            # "Where to" and "from where" are other questions.
            return bool(verb.place) and ":" not in verb.place[0]
        case _:
            return "state" not in verb.traits


def _without_answer(clause: Clause, question: str) -> Clause:
    """Return a clause without the part that a question word asks for: for "where", the place.

    Most questions are not negated, since "what did she not see?" sounds odd.
    """
    match question:
        case "who":
            return replace(clause, subject=None)
        case "what" | "whom":
            return replace(clause, object=None, is_negated=False)
        case "where":
            return replace(clause, place=None, purpose=None, is_negated=False)
        case "when":
            return replace(clause, time=NOTHING, frequency=NOTHING, is_negated=False)
        case _:
            return clause
