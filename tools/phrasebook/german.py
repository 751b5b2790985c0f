"""Write sentences in German: declension, separable verbs, and the places of the finite verb.

The finite verb is second in a main clause, before the subject in a question, and last in a
subordinate clause. What stands between the finite verb and the rest of the verb is the midfield.
Cases are n, a, d and g: nominative, accusative, dative, genitive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tools.phrasebook.lexicon import Name, Noun, Pronoun, Weather
from tools.phrasebook.trees import Clause, Phrase, Place, Sentence, join_words

# The forms of each case; in each case by column: masculine, feminine, neuter, plural.
Paradigm = dict[str, tuple[str, ...]]


def paradigm(nominative: str, accusative: str, dative: str, genitive: str) -> Paradigm:
    """Return the forms of a German article or ending, by case.

    Each argument is a text with the forms of one case, such as "der die das die": masculine,
    feminine, neuter and plural. "-" is an empty form.

    Args:
        nominative: The forms in the nominative (key `n` of the result).
        accusative: The forms in the accusative (`a`).
        dative: The forms in the dative (`d`).
        genitive: The forms in the genitive (`g`).
    """
    forms_by_case = {"n": nominative, "a": accusative, "d": dative, "g": genitive}
    result: Paradigm = {}
    for case, forms in forms_by_case.items():
        result[case] = tuple(form.strip("-") for form in forms.split())
    return result


GENDER_COLUMNS = {"m": 0, "f": 1, "n": 2}
PLURAL_COLUMN = 3
DEFINITE = paradigm("der die das die", "den die das die", "dem der dem den", "des der des der")
RELATIVE = {**DEFINITE, "d": ("dem", "der", "dem", "denen")}
# The endings of determiners.
EIN = paradigm("- e - e", "en e - e", "em er em en", "es er es er")
DIESER = paradigm("er e es e", "en e es e", "em er em en", "es er es er")
# The endings of adjectives: after "der", after "ein", and without an article.
WEAK = paradigm("e e e en", "en e e en", "en en en en", "en en en en")
MIXED = paradigm("er e es en", "en e es en", "en en en en", "en en en en")
STRONG = paradigm("er e es e", "en e es e", "em er em en", "en er en er")
STEMS = {"this": "dies", "every": "jed", "many": "viel", "some": "einig", "a": "ein", "no": "kein"}
CONTRACTIONS = {
    "in dem": "im",
    "in das": "ins",
    "an dem": "am",
    "an das": "ans",
    "zu dem": "zum",
    "zu der": "zur",
    "von dem": "vom",
}
# By person, in the order of Pronoun.person.
HABEN = ("habe", "hast", "hat", "haben", "haben")
SEIN = ("bin", "bist", "ist", "sind", "sind")
WERDEN = ("werde", "wirst", "wird", "werden", "werden")
PRETERITE = {
    "sein": ("war", "warst", "war", "waren", "waren"),
    "haben": ("hatte", "hattest", "hatte", "hatten", "hatten"),
    "geben": ("gab", "gab", "gab", "gab", "gab"),
}
QUESTION_WORDS = {
    "yesno": "",
    "where": "wo",
    "when": "wann",
    "why": "warum",
    "what": "was",
    "who": "wer",
}
WHOM = {"a": "wen", "d": "wem"}
# The prepositions of cities and countries.
NAME_PREPOSITIONS = {"at": "in", "to": "nach", "from": "aus"}


class VerbForms(NamedTuple):
    """The verb of a clause.

    Attributes:
        finite: The finite verb of a main clause.
        rest: What stands at the end of a main clause: a participle, an infinitive, or a prefix.
        subordinate: The whole verb, at the end of a subordinate clause.
    """

    finite: str
    rest: str
    subordinate: str


def sentence(tree: Sentence) -> str:
    """Write a sentence tree, which contains no order of words, as a German sentence.

    It consists of one clause, or of two with a conjunction between them.
    """
    if tree.question:
        text = clause(tree.clause, "question", first_word=_question_word(tree))
    elif tree.second is None:
        text = clause(tree.clause)
    else:
        text = _two_clauses(tree, tree.second)
    text += "?" if tree.question else "."
    # Each relative clause was written with a comma at its end. Before another mark, it is removed.
    for mark in (",", ".", "?"):
        text = text.replace("," + mark, mark)
    return text[0].upper() + text[1:]


def _question_word(tree: Sentence) -> str:
    """Return the German question word of a sentence; empty for a question without one."""
    if tree.question == "whom":
        # `government` is the preposition, if the verb has one, and last the case: ("auf", "a").
        case = tree.clause.verb.government[-1]
        return WHOM[case]
    return QUESTION_WORDS[tree.question]


def _two_clauses(tree: Sentence, second: Clause | Weather) -> str:
    """Write two German clauses with their conjunction, which decides where the verbs stand.

    Args:
        tree: The sentence.
        second: Its second clause.
    """
    conjunction = tree.link.de
    if tree.link.kind == "join":
        comma = "," if conjunction == "aber" else ""
        second_text = second.de if isinstance(second, Weather) else clause(second)
        return f"{clause(tree.clause)}{comma} {conjunction} {second_text}"
    if tree.starts_with_second:
        # The finite verb follows the subordinate clause at once, as in a question.
        return f"{conjunction} {subordinate(second)}, {clause(tree.clause, 'question')}"
    return f"{clause(tree.clause)}, {conjunction} {subordinate(second)}"


def subordinate(tree: Clause | Weather) -> str:
    """Write a clause with the order of a subordinate clause."""
    if isinstance(tree, Weather):
        return tree.de_final
    return clause(tree, "final")


def clause(tree: Clause, order: str = "main", first_word: str = "") -> str:
    """Write the tree of a clause in German words, without a mark at its end.

    The two parts of a verb, such as "hat" and "gesehen", frame the rest of the clause, the
    midfield.

    Args:
        tree: The clause.
        order: Where the finite verb stands: second (`main`), before the subject (`question`), or
            last (`final`).
        first_word: The question word.
    """
    subject = "es" if "exist" in tree.verb.traits else noun_phrase(tree.subject, "n")
    forms = verb_forms(tree)
    midfield_words = midfield(tree)
    is_inverted = order == "question" or tree.is_fronted
    if is_inverted and _reflexive_precedes_subject(tree):
        # "Gestern hat sich der Mann ausgeruht": the midfield begins with the reflexive.
        subject = f"{midfield_words[0]} {subject}"
        midfield_words = midfield_words[1:]
    middle = join_words(*midfield_words)
    if order == "final":
        text = join_words(subject, middle, forms.subordinate)
    elif order == "question":
        text = join_words(first_word, forms.finite, subject, middle, forms.rest)
    elif tree.is_fronted:
        text = join_words(tree.time.de, forms.finite, subject, middle, forms.rest)
    else:
        text = join_words(subject, forms.finite, middle, forms.rest)
    if tree.infinitive is not None:
        text += f", {infinitive(tree.infinitive)}"
    if tree.purpose is not None:
        text += f", um {infinitive(tree.purpose)}"
    return text


def _is_reflexive(tree: Clause) -> bool:
    """Return whether the verb of a clause is reflexive in German."""
    return tree.verb.reflexive in ("de", "both")


def _reflexive_precedes_subject(tree: Clause) -> bool:
    """Return whether `sich` stands before the subject: "Gestern hat sich der Mann ausgeruht".

    In a clause whose subject follows the finite verb, it does so before nouns and names, but not
    before pronouns: "Gestern hat er sich ausgeruht".
    """
    if not _is_reflexive(tree) or tree.subject is None:
        return False
    return not isinstance(tree.subject.head, Pronoun)


def verb_forms(tree: Clause) -> VerbForms:
    """Return the two parts of the German verb of a clause, and its form in a subordinate clause.

    For "anrufen" in the past: `hat`, `angerufen`, and `angerufen hat`.
    """
    verb = tree.verb
    modal = tree.modal
    person = tree.person
    is_past = tree.tense == "past"
    if tree.tense == "future":
        finite = WERDEN[person]
        rest = verb.prefix + verb.de
    elif modal is not None:
        finite = modal.de_past[person] if is_past else modal.de[person]
        rest = verb.prefix + verb.de
    elif is_past and (verb.de in ("sein", "haben") or "exist" in verb.traits):
        # These verbs use the simple past, "war", where others use the perfect.
        finite = PRETERITE[verb.de][person]
        rest = ""
    elif is_past:
        auxiliary = SEIN if verb.auxiliary else HABEN
        finite = auxiliary[person]
        rest = verb.de_participle
    else:
        finite = verb.de_present[person]
        # One word at the end of a subordinate clause: "weil er anruft".
        return VerbForms(finite, rest=verb.prefix, subordinate=verb.prefix + finite)
    return VerbForms(finite, rest, subordinate=join_words(rest, finite))


@dataclass
class _Objects:
    """The objects of a clause, by their place in the midfield.

    Attributes:
        pronouns: Pronouns, which come first.
        definite: Definite objects, which precede "nicht".
        indefinite: Indefinite objects, which follow it.
        prepositional: Objects with a preposition, which come last.
        has_kein: Whether the article `kein` negates the clause.
    """

    pronouns: list[str] = field(default_factory=list)
    definite: list[str] = field(default_factory=list)
    indefinite: list[str] = field(default_factory=list)
    prepositional: list[str] = field(default_factory=list)
    has_kein: bool = False


def midfield(tree: Clause) -> list[str]:
    """Return what stands between the two parts of a German verb, in its order.

    The order is: pronouns, the time, definite objects ("the", "this"), the negation or frequency,
    the manner, indefinite objects ("a", "many"), objects with a preposition, the place. A part that
    the clause lacks is an empty text.
    """
    objects = _Objects()
    if _is_reflexive(tree):
        objects.pronouns.append(reflexive_pronoun(tree.subject))
    if tree.recipient is not None:
        is_pronoun = isinstance(tree.recipient.head, Pronoun)
        group = objects.pronouns if is_pronoun else objects.definite
        group.append(noun_phrase(tree.recipient, "d"))
    if tree.object is not None:
        _add_object(objects, tree, tree.object)
    is_negated_by_nicht = tree.is_negated and not objects.has_kein
    return [
        *objects.pronouns,
        "" if tree.is_fronted else tree.time.de,
        "gerade" if tree.tense == "progressive" else "",
        *objects.definite,
        "nicht" if is_negated_by_nicht else tree.frequency.de,
        tree.manner.de,
        *objects.indefinite,
        place_phrase(tree.companion),
        *objects.prepositional,
        place_phrase(tree.place),
        tree.complement.de,
        _predicate_adjective(tree),
    ]


def _add_object(objects: _Objects, tree: Clause, target: Phrase) -> None:
    """Add the object of a German clause to the group of objects with which it stands.

    The groups stand in different places: pronouns, objects that are known ("the", "this") or new
    ("a", "many"), and objects with a preposition. A negated object, as in "keinen Hund", is noted,
    since the clause then has no "nicht".

    Args:
        objects: The groups so far; changed in place.
        tree: The clause.
        target: Its object.
    """
    # A verb that governs no case is "to be": its object is in the nominative.
    government = tree.verb.government or ("n",)
    case = government[-1]
    if len(government) > 1:
        preposition = government[0]
        text = f"{preposition} {noun_phrase(target, case)}"
        # Before a relative clause, the article is not contracted: "von dem Mann, der kam".
        if case == "d" and target.relative is None:
            text = contracted(text)
        objects.prepositional.append(text)
        return
    objects.has_kein = tree.is_negated and target.determiner in ("a", "bare", "role")
    text = noun_phrase(target, case, is_negated=objects.has_kein)
    if isinstance(target.head, Pronoun):
        objects.pronouns.append(text)
    elif target.determiner in ("a", "bare", "role", "many", "some"):
        objects.indefinite.append(text)
    else:
        objects.definite.append(text)


def _predicate_adjective(tree: Clause) -> str:
    """Write the adjective after "sein": "alt", or in a comparison "älter als Paul"."""
    if tree.adjective is None:
        return ""
    if tree.than is None:
        return tree.adjective.de
    return f"{tree.adjective.de_more} als {noun_phrase(tree.than, 'n')}"


def reflexive_pronoun(subject: Phrase | None) -> str:
    """Return the reflexive pronoun of a subject."""
    if subject is not None and isinstance(subject.head, Pronoun):
        return subject.head.reflexive
    return "sich"


def infinitive(tree: Clause) -> str:
    """Write a German infinitive with `zu` and its complements: "das Buch zu lesen"."""
    verb = tree.verb
    # After the prefix of a separable verb, `zu` is a part of the word: "anzurufen", "zu rufen".
    marker = f"{verb.prefix}zu" if verb.prefix else "zu "
    return join_words(*midfield(tree), marker + verb.de)


def place_phrase(tree: Place | None) -> str:
    """Write a place in German with its preposition: "im Garten"; None gives an empty text."""
    if tree is None:
        return ""
    phrase = tree.phrase
    if tree.preposition is not None:
        return f"{tree.preposition.de} {noun_phrase(phrase, tree.preposition.case)}"
    if not isinstance(phrase.head, Noun):
        return f"{NAME_PREPOSITIONS[tree.relation]} {noun_phrase(phrase, 'd')}"
    preposition = phrase.head.preposition("de", tree.relation)
    # "In den Garten" is a direction, "in dem Garten" a place.
    is_direction = tree.relation == "to" and preposition in ("in", "auf", "an")
    case = "a" if is_direction else "d"
    return contracted(f"{preposition} {noun_phrase(phrase, case)}")


def contracted(text: str) -> str:
    """Contract a preposition at the start of a text with its article: am, im, zum."""
    start = " ".join(text.split(" ")[:2])
    return CONTRACTIONS.get(start, start) + text.removeprefix(start)


def noun_phrase(tree: Phrase | None, case: str, *, is_negated: bool = False) -> str:
    """Write a noun phrase in German: "dem alten Mann, den sie sieht,".

    Args:
        tree: The phrase; None for an empty text.
        case: Its case: n, a, d or g (nominative, accusative, dative, genitive).
        is_negated: Whether its article is `kein`.
    """
    if tree is None:
        return ""
    head = tree.head
    if isinstance(head, Pronoun):
        return {"n": head.de, "a": head.accusative, "d": head.dative}[case]
    if isinstance(head, Name):
        if tree.second_name is None:
            return head.de
        return f"{head.de} und {tree.second_name.de}"
    column = PLURAL_COLUMN if tree.is_plural else GENDER_COLUMNS[head.gender]
    article, endings = determiner(tree, case, column, is_negated=is_negated)
    adjective = ""
    if tree.adjective is not None:
        adjective = tree.adjective.de_stem + endings[case][column]
    text = join_words(
        article, tree.count.de, adjective, noun_form(head, case, is_plural=tree.is_plural)
    )
    if tree.owner is not None and isinstance(tree.owner.head, Noun):
        text = f"{text} {noun_phrase(tree.owner, 'g')}"
    if tree.relative is not None:
        relative = tree.relative
        # The relative pronoun has the case that it has in its own clause.
        relative_case = relative.verb.government[-1] if relative.gap == "object" else "n"
        pronoun = RELATIVE[relative_case][column]
        text = f"{text}, {pronoun} {clause(relative, 'final')},"
    return text


def determiner(tree: Phrase, case: str, column: int, *, is_negated: bool) -> tuple[str, Paradigm]:
    """Return the German determiner of a noun, and the endings of an adjective after it.

    Adjectives have other endings after "der" (weak), after "ein" (mixed), and without an article
    (strong): "der alte Mann", "ein alter Mann".

    Args:
        tree: The noun phrase.
        case: Its case: n, a, d or g.
        column: The column of its gender, or of the plural, in a paradigm.
        is_negated: Whether the determiner is `kein`.
    """
    name = "no" if is_negated else tree.determiner
    if tree.owner is not None:
        owner = tree.owner.head
        if isinstance(owner, Pronoun):
            return owner.de_owner + EIN[case][column], MIXED
        if isinstance(owner, Name):
            return owner.de + "s", STRONG
        # A genitive follows the noun: "das Buch des Kindes".
        name = "the"
    match name:
        case "the":
            return DEFINITE[case][column], WEAK
        case "this" | "every":
            return STEMS[name] + DIESER[case][column], WEAK
        case "many" | "some":
            return STEMS[name] + DIESER[case][column], STRONG
        case "no":
            return STEMS[name] + EIN[case][column], MIXED
        case "a" if column != PLURAL_COLUMN:
            return STEMS[name] + EIN[case][column], MIXED
        case _:
            return "", STRONG


def noun_form(noun: Noun, case: str, *, is_plural: bool) -> str:
    """Return the form of a German noun in a case: n, a, d or g."""
    if is_plural:
        return noun.dative_plural if case == "d" else noun.de_plural
    match case:
        case "n":
            return noun.de
        case "g":
            return noun.genitive
        case _:
            return noun.oblique
