"""Write sentences in English: auxiliary verbs, articles and the order of words."""

from __future__ import annotations

from typing import NamedTuple

from tools.phrasebook.lexicon import Adjective, Name, Noun, Pronoun, Weather
from tools.phrasebook.trees import (
    THIRD_PLURAL,
    THIRD_SINGULAR,
    Clause,
    Phrase,
    Place,
    Sentence,
    join_words,
)

# By person, in the order of Pronoun.person.
BE = ("am", "are", "is", "are", "are")
WAS = ("was", "were", "was", "were", "were")
# Words that start with the sound of a vowel or, against their spelling, of a consonant: a, an.
SPOKEN_VOWELS = ("a", "e", "i", "o", "u", "honest")
SPOKEN_CONSONANTS = ("uni", "use")


class Predicate(NamedTuple):
    """The verb of a clause. Each part may be empty.

    Attributes:
        auxiliary: The auxiliary or modal verb, which precedes the subject of a question.
        adverb: What follows the auxiliary: `not`, `often`.
        verb: The full verb.
    """

    auxiliary: str
    adverb: str
    verb: str


def sentence(tree: Sentence) -> str:
    """Write a sentence tree, which contains no order of words, as an English sentence.

    It consists of one clause, or of two with a conjunction (`link`) between them.
    """
    text = clause(tree.clause, tree.question)
    if tree.second is not None:
        conjunction = tree.link.en
        second = tree.second.en if isinstance(tree.second, Weather) else clause(tree.second)
        if tree.starts_with_second:
            # "If it rains, she stays at home."
            text = f"{conjunction} {second}, {text}"
        elif tree.link.kind == "join":
            text = f"{text}, {conjunction} {second}"
        else:
            text = f"{text} {conjunction} {second}"
    mark = "?" if tree.question else "."
    return text[0].upper() + text[1:] + mark


def clause(tree: Clause, question: str = "") -> str:
    """Write the tree of a clause in English words, without a mark at its end.

    Args:
        tree: The clause.
        question: The question word, such as "where"; `yesno` for a question without one; empty for
            a statement.
    """
    if question == "who":
        subject = "who"
    elif "exist" in tree.verb.traits:
        subject = "there"
    else:
        subject = noun_phrase(tree.subject)
    # "Where does she live?", but "Who lives here?", which has the order of a statement.
    is_inverted = question not in ("", "who")
    auxiliary, adverb, verb = predicate(tree, is_inverted=is_inverted)
    if is_inverted:
        question_word = "" if question == "yesno" else question
        start = join_words(question_word, auxiliary, subject, adverb, verb)
    else:
        start = join_words(subject, auxiliary, adverb, verb)
    time = tree.time.en
    if tree.is_fronted:
        start = f"{time}, {start}"
        time = ""
    return join_words(
        start,
        complements(tree),
        time,
        infinitive(tree.infinitive, "to"),
        infinitive(tree.purpose, "in order to"),
    )


def predicate(tree: Clause, *, is_inverted: bool = False) -> Predicate:
    """Return the words of the verb in an English clause: "has", "not", "seen" for example.

    Args:
        tree: The clause.
        is_inverted: Whether the auxiliary precedes the subject, as in "does he know". Then the verb
            needs an auxiliary.
    """
    verb = tree.verb
    person = tree.person
    if "exist" in verb.traits and tree.object is not None:
        # In "there are two dogs", the verb agrees with the object.
        person = THIRD_PLURAL if tree.object.is_plural else THIRD_SINGULAR
    adverb = "not" if tree.is_negated else tree.frequency.en
    if tree.tense == "future":
        return Predicate("will", adverb, verb.en)
    if tree.tense == "progressive":
        return Predicate(BE[person], adverb, verb.en_ing)
    if tree.modal is not None and tree.modal.en != "want":
        return _modal_predicate(tree, adverb, is_inverted=is_inverted)
    if verb.en == "be" and tree.modal is None:
        forms = WAS if tree.tense == "past" else BE
        if "exist" in verb.traits and tree.is_negated:
            # The article "no" negates: "there is no dog".
            adverb = ""
        return Predicate(forms[person], adverb, "")
    return _plain_predicate(tree, adverb, is_inverted=is_inverted)


def _modal_predicate(tree: Clause, adverb: str, *, is_inverted: bool) -> Predicate:
    """Return an English modal verb and the infinitive after it: "must", "not", "go".

    Args:
        tree: The clause, which has a modal verb.
        adverb: `not` or an adverb of frequency.
        is_inverted: Whether the auxiliary precedes the subject, as in a question.
    """
    modal = tree.modal
    assert modal is not None
    is_past = tree.tense == "past"
    infinitive = join_words(modal.en_link, tree.verb.en)
    if modal.en == "can" and tree.is_negated and not is_past and not is_inverted:
        # One word, except in a question: "can he not come?"
        return Predicate("cannot", "", infinitive)
    return Predicate(modal.en_past if is_past else modal.en, adverb, infinitive)


def _plain_predicate(tree: Clause, adverb: str, *, is_inverted: bool) -> Predicate:
    """Return an English full verb, with a form of "do" if a question or negation requires it.

    The modal verb "want" is used in the same way: "she does not want to go".

    Args:
        tree: The clause.
        adverb: `not` or an adverb of frequency.
        is_inverted: Whether the clause is a question.
    """
    base = tree.verb.en
    third_person = tree.verb.en_third
    past = tree.verb.en_past
    if tree.modal is not None:
        base = f"want to {tree.verb.en}"
        third_person = f"wants to {tree.verb.en}"
        past = f"wanted to {tree.verb.en}"
    needs_do = tree.is_negated or is_inverted
    if tree.tense == "past":
        return Predicate("did", adverb, base) if needs_do else Predicate("", adverb, past)
    if tree.person == THIRD_SINGULAR:
        return Predicate("does", adverb, base) if needs_do else Predicate("", adverb, third_person)
    return Predicate("do" if needs_do else "", adverb, base)


def complements(tree: Clause) -> str:
    """Write what stands between the verb and the time in an English clause: objects and places."""
    recipient_before = ""
    recipient_after = ""
    if tree.recipient is not None:
        recipient = noun_phrase(tree.recipient, "object")
        # "Give her the book", but "give the book to Anna".
        if isinstance(tree.recipient.head, Pronoun):
            recipient_before = recipient
        else:
            recipient_after = f"to {recipient}"
    has_article_no = "exist" in tree.verb.traits and tree.is_negated
    return join_words(
        tree.verb.particle,
        recipient_before,
        noun_phrase(tree.object, "object", is_negated=has_article_no),
        tree.complement.en,
        _predicate_adjective(tree.adjective, tree.than),
        recipient_after,
        tree.manner.en,
        place_phrase(tree.companion),
        place_phrase(tree.place),
    )


def _predicate_adjective(adjective: Adjective | None, than: Phrase | None) -> str:
    """Write the adjective after "to be": "old", or in a comparison "older than Paul"."""
    if adjective is None:
        return ""
    if than is None:
        return adjective.en
    return f"{adjective.en_more} than {noun_phrase(than)}"


def infinitive(tree: Clause | None, marker: str) -> str:
    """Write an English infinitive with its complements: "to read the book".

    Args:
        tree: The infinitive as a clause; None for an empty text.
        marker: What precedes the verb: "to" or "in order to".
    """
    if tree is None:
        return ""
    return join_words(marker, tree.verb.en, complements(tree), tree.time.en)


def place_phrase(tree: Place | None) -> str:
    """Write a place in English with its preposition: "in the garden"; None gives an empty text."""
    if tree is None:
        return ""
    if tree.preposition is not None:
        preposition = tree.preposition.en
    elif tree.relation == "from":
        # The verb has "from" as its particle.
        preposition = ""
    elif isinstance(tree.phrase.head, Noun):
        preposition = tree.phrase.head.preposition("en", tree.relation)
    else:
        preposition = "to" if tree.relation == "to" else "in"
    return join_words(preposition, noun_phrase(tree.phrase, "object"))


def noun_phrase(tree: Phrase | None, role: str = "subject", *, is_negated: bool = False) -> str:
    """Write a noun phrase in English: "an old house that she likes".

    Args:
        tree: The phrase; None for an empty text.
        role: `subject` or `object`, which differ in pronouns: "he" and "him".
        is_negated: Whether its article is "no".
    """
    if tree is None:
        return ""
    head = tree.head
    if isinstance(head, Pronoun):
        return head.en if role == "subject" else head.en_object
    if isinstance(head, Name):
        if tree.second_name is None:
            return head.en
        return f"{head.en} and {tree.second_name.en}"
    adjective = tree.adjective.en if tree.adjective else ""
    noun = head.en_plural if tree.is_plural else head.en
    text = join_words(tree.count.en, adjective, noun)
    if tree.owner is not None:
        text = _with_owner(text, tree.owner)
    else:
        determiner_name = "no" if is_negated else tree.determiner
        text = join_words(determiner(determiner_name, text, is_plural=tree.is_plural), text)
    if tree.relative is not None:
        text = f"{text} {_relative_pronoun(head, tree.relative)} {clause(tree.relative)}"
    return text


def _with_owner(text: str, owner: Phrase) -> str:
    """Add the owner to an English noun: her book, Anna's book, the book of the child."""
    if isinstance(owner.head, Pronoun):
        return f"{owner.head.en_owner} {text}"
    if isinstance(owner.head, Name):
        return f"{owner.head.en}'s {text}"
    return f"the {text} of {noun_phrase(owner, 'object')}"


def _relative_pronoun(head: Noun, relative: Clause) -> str:
    """Return the pronoun that starts the relative clause of a noun."""
    if "person" not in head.classes:
        return "that"
    return "whom" if relative.gap == "object" else "who"


def determiner(name: str, following: str, *, is_plural: bool) -> str:
    """Return the form of an English determiner, such as "these" for `this` in the plural.

    Args:
        name: The determiner: `the`, `a`, `this`, `no` and so on; `bare` for none; `role` for the
            article in "he is a doctor".
        following: The text after it, by which "a" becomes "an".
        is_plural: Whether the noun is plural.
    """
    match name:
        case "bare":
            return ""
        case "this":
            return "these" if is_plural else "this"
        case "a" | "role" if is_plural:
            return ""
        case "a" | "role":
            has_vowel = following.lower().startswith(SPOKEN_VOWELS)
            return "an" if has_vowel and not following.startswith(SPOKEN_CONSONANTS) else "a"
        case _:
            return name
