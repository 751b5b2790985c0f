"""Write sentences in French: agreement, clitics, elision and contraction.

A clitic is a pronoun that stands before the verb. Elision drops the vowel of a short word before
another vowel: `l'homme`. Contraction joins a preposition and an article: `du`, `au`. Sentences are
written without elision, which is done at the end.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tools.phrasebook.lexicon import Adjective, Name, Noun, Pronoun, Verb, Weather
from tools.phrasebook.trees import Clause, Phrase, Place, Sentence, join_words

# By person, in the order of Pronoun.person.
AVOIR = ("ai", "as", "a", "avons", "ont")
ETRE = ("suis", "es", "est", "sommes", "sont")
ALLER = ("vais", "vas", "va", "allons", "vont")
IMPERFECT = {
    "être": ("étais", "étais", "était", "étions", "étaient"),
    "avoir": ("avais", "avais", "avait", "avions", "avaient"),
}
# Words that start with these letters start with the sound of a vowel; every h of the lexicon is
# silent. Two numbers are exceptions.
VOWELS = tuple("aâàeéèêiîoôœuh")
NOT_ELIDING = ("huit", "onze")
CONTRACTIONS = {"de le": "du", "de les": "des", "à le": "au", "à les": "aux"}
QUESTION_WORDS = {
    "yesno": "est-ce que",
    "where": "où est-ce que",
    "when": "quand est-ce que",
    "why": "pourquoi est-ce que",
    "what": "qu'est-ce que",
    "whom": "qui est-ce que",
    "who": "qui",
}
QUANTIFIERS = {"many": "beaucoup de", "some": "quelques", "every": "chaque"}
# A clitic, an article or a conjunction before a vowel, or before the clitic y.
ELISION = re.compile(
    r"\b([JjMmTtSsNnDdLl]e|[Ll]a|[Qq]ue) (?!huit|onze)(?=[aâàeéèêiîoôœuhAEÉIO]|y )"
)
SI_IL = re.compile(r"\b([Ss])i (?=ils?\b)")


class Agreement(NamedTuple):
    """What an adjective or a participle agrees with.

    Attributes:
        gender: m or f.
        is_plural: Whether it is plural.
    """

    gender: str
    is_plural: bool


def sentence(tree: Sentence) -> str:
    """Write a sentence tree, which contains no order of words, as a French sentence.

    It consists of one clause, or of two with a conjunction (`link`) between them.
    """
    text = clause(tree.clause)
    second = tree.second
    conjunction = tree.link.fr
    if tree.question:
        text = f"{QUESTION_WORDS[tree.question]} {text}"
        if tree.question == "whom" and tree.clause.verb.fr_government:
            # "À qui est-ce que": the only preposition of a verb that "whom" asks about.
            text = f"à {text}"
    elif second is not None:
        second_text = second.fr if isinstance(second, Weather) else clause(second)
        if tree.starts_with_second:
            text = f"{conjunction} {second_text}, {text}"
        else:
            comma = "," if conjunction == "mais" else ""
            text = f"{text}{comma} {conjunction} {second_text}"
    # The last step, since elision (`le homme` to `l'homme`) depends on the next word.
    text = elided(text)
    mark = " ?" if tree.question else "."
    return text[0].upper() + text[1:] + mark


def elided(text: str) -> str:
    """Drop vowels before vowels: je ai becomes j'ai, si il becomes s'il."""
    text = ELISION.sub(_drop_last_letter, text)
    return SI_IL.sub(r"\1'", text)


def _drop_last_letter(match: re.Match[str]) -> str:
    """Replace the last letter of a matched word, and the space after it, by an apostrophe."""
    return match[1][:-1] + "'"


def clause(tree: Clause) -> str:
    """Write the tree of a clause in French words, without elision (`le homme`) and final mark.

    In a question, the clause follows the question word unchanged: "où est-ce que" + clause.
    """
    subject = "il" if "exist" in tree.verb.traits else noun_phrase(tree.subject)
    time = tree.time.fr
    if tree.is_fronted:
        subject = f"{time}, {subject}"
        time = ""
    return join_words(
        subject,
        predicate(tree),
        complements(tree),
        time,
        infinitive(tree.infinitive, _infinitive_marker(tree.verb)),
        infinitive(tree.purpose, "pour"),
    )


def _infinitive_marker(verb: Verb) -> str:
    """Return the preposition that a verb requires before an infinitive: essayer de, commencer à."""
    for trait in verb.traits:
        if trait.startswith("inf:"):
            return trait.removeprefix("inf:")
    return ""


def infinitive(tree: Clause | None, marker: str) -> str:
    """Write a French infinitive with its complements: "pour lire le livre".

    Args:
        tree: The infinitive as a clause; None for an empty text.
        marker: The preposition before the verb.
    """
    if tree is None:
        return ""
    return join_words(marker, clitic(tree), tree.verb.fr, complements(tree), tree.time.fr)


def predicate(tree: Clause) -> str:
    """Write the verb of a French clause: "ne l'a pas vu", before elision "ne le a pas vu".

    Around the finite verb stand the negation or an adverb of frequency, and the clitic: a pronoun
    for an object, such as "le".
    """
    verb = tree.verb
    modal = tree.modal
    person = tree.person
    is_past = tree.tense == "past"
    # The clitic stands before the verb that it belongs to: the infinitive, if there is one.
    infinitive_with_clitic = join_words(clitic(tree), verb.fr)
    finite_clitic = ""
    if tree.tense == "progressive":
        finite = ETRE[person]
        rest = f"en train de {infinitive_with_clitic}"
    elif modal is not None:
        finite = modal.fr_past[person] if is_past else modal.fr[person]
        rest = infinitive_with_clitic
    elif tree.tense == "future":
        finite = ALLER[person]
        rest = infinitive_with_clitic
    else:
        finite_clitic = clitic(tree)
        finite, rest = _present_or_past(tree)
    adverb = "pas" if tree.is_negated else tree.frequency.fr
    # A complement may contain the negation: "pas le temps".
    is_negated_by_complement = tree.complement.fr.startswith("pas ")
    has_ne = tree.is_negated or adverb == "jamais" or is_negated_by_complement
    return join_words("ne" if has_ne else "", finite_clitic, finite, adverb, rest)


def _present_or_past(tree: Clause) -> tuple[str, str]:
    """Return the French finite verb in the present or past, and the participle or an empty text.

    For example, ("a", "vu") in the past, and ("voit", "") in the present.
    """
    verb = tree.verb
    if tree.tense != "past":
        return verb.fr_present[tree.person], ""
    if verb.fr in IMPERFECT:
        return IMPERFECT[verb.fr][tree.person], ""
    auxiliary = ETRE if verb.fr_auxiliary else AVOIR
    return auxiliary[tree.person], past_participle(tree)


def clitic(tree: Clause) -> str:
    """Return the French pronoun before the verb, such as "la" in "il la voit"; empty for none."""
    verb = tree.verb
    if "exist" in verb.traits:
        return "y"
    if verb.reflexive in ("fr", "both"):
        return _reflexive_pronoun(tree.subject)
    if tree.recipient is not None and isinstance(tree.recipient.head, Pronoun):
        return tree.recipient.head.indirect
    if tree.object is None or not isinstance(tree.object.head, Pronoun):
        return ""
    match verb.fr_government:
        case "":
            return tree.object.head.clitic
        case "à*":
            return tree.object.head.indirect
        case _:
            # After another preposition, the pronoun follows the verb.
            return ""


def _reflexive_pronoun(subject: Phrase | None) -> str:
    """Return the reflexive pronoun of a subject."""
    if subject is not None and isinstance(subject.head, Pronoun):
        return subject.head.fr_reflexive
    return "se"


def past_participle(tree: Clause) -> str:
    """Return the French participle of a clause, with the endings of gender and number.

    After `être` it agrees with the subject: "elle est venue". After `avoir` it agrees with a direct
    object that precedes it: with a clitic, "il l'a vue", or with the noun that a relative clause
    describes, "la maison qu'il a vue".
    """
    verb = tree.verb
    if verb.fr_auxiliary:
        return _agreed(verb.fr_participle, agreement_with(tree.subject, tree))
    if verb.fr_government:
        return verb.fr_participle
    if tree.gap == "object":
        return _agreed(verb.fr_participle, agreement_with(None, tree))
    if tree.object is not None and isinstance(tree.object.head, Pronoun):
        return _agreed(verb.fr_participle, agreement_with(tree.object, tree))
    return verb.fr_participle


def agreement_with(phrase: Phrase | None, tree: Clause) -> Agreement:
    """Return the gender and number with which an adjective or participle agrees.

    Args:
        phrase: The phrase that it agrees with; None if a relative pronoun takes its place.
        tree: The clause of the phrase.
    """
    if phrase is None:
        return Agreement(tree.gap_gender, tree.is_gap_plural)
    if isinstance(phrase.head, Pronoun):
        # The persons 3 and 4 are we and they.
        return Agreement(gender(phrase), phrase.head.person in ("3", "4"))
    return Agreement(gender(phrase), phrase.is_plural)


def _agreed(participle: str, agreement: Agreement) -> str:
    """Add the French endings of gender and number to a participle: "vu" becomes "vues"."""
    if agreement.gender == "f":
        participle += "e"
    if agreement.is_plural and not participle.endswith("s"):
        participle += "s"
    return participle


def gender(phrase: Phrase) -> str:
    """Return the French gender of a phrase, m or f; two names are feminine only if both are."""
    if isinstance(phrase.head, Noun):
        return phrase.head.fr_gender
    if phrase.second_name is not None and phrase.second_name.sex != "f":
        return "m"
    return "f" if phrase.head.sex == "f" else "m"


def complements(tree: Clause) -> str:
    """Write what stands between the verb and the time in a French clause: objects and places."""
    recipient = ""
    # A pronoun is a clitic instead.
    if tree.recipient is not None and not isinstance(tree.recipient.head, Pronoun):
        recipient = with_preposition("à", tree.recipient)
    return join_words(
        tree.manner.fr,
        _object_phrase(tree),
        tree.complement.fr,
        _predicate_adjective(tree),
        recipient,
        place_phrase(tree.companion),
        place_phrase(tree.place),
    )


def _object_phrase(tree: Clause) -> str:
    """Write the object after a French verb; empty if it is a pronoun before the verb."""
    target = tree.object
    preposition = tree.verb.fr_government
    if target is None:
        return ""
    if isinstance(target.head, Pronoun) and preposition in ("", "à*"):
        # A pronoun without a preposition, or with one that it replaces: "il la voit", "il lui
        # parle".
        return ""
    if preposition:
        return with_preposition(preposition.rstrip("*"), target)
    is_negated = tree.is_negated or tree.frequency.fr == "jamais"
    # "Pas de voiture", but "ce n'est pas un médecin".
    has_article_de = is_negated and "copula" not in tree.verb.traits
    return noun_phrase(target, "de" if has_article_de else "")


def _predicate_adjective(tree: Clause) -> str:
    """Write the adjective after "être": "vieille", or in a comparison "plus vieille que Paul"."""
    if tree.adjective is None:
        return ""
    text = adjective_form(tree.adjective, agreement_with(tree.subject, tree))
    if tree.than is None:
        return text
    return f"plus {text} que {_after_preposition(tree.than)}"


def place_phrase(tree: Place | None) -> str:
    """Write a place in French with its preposition: "dans le jardin"; None gives an empty text."""
    if tree is None:
        return ""
    if tree.preposition is not None:
        return with_preposition(tree.preposition.fr, tree.phrase)
    head = tree.phrase.head
    if isinstance(head, Noun):
        return with_preposition(head.preposition("fr", tree.relation), tree.phrase)
    if tree.relation == "from":
        preposition = "de"
    elif isinstance(head, Name) and head.kind == "country":
        preposition = "en"
    else:
        preposition = "à"
    return f"{preposition} {noun_phrase(tree.phrase)}"


def with_preposition(preposition: str, phrase: Phrase) -> str:
    """Write a French phrase after a preposition.

    `de` and `à` contract with `le` and `les`: "du jardin", "aux enfants". After `de`, the article
    `des` is left out: "de livres".

    Args:
        preposition: The preposition, of one or more words.
        phrase: The phrase.
    """
    ends_with_de = preposition.split(" ")[-1] == "de"
    text = _after_preposition(phrase, article="bare" if ends_with_de else "")
    article, _, noun = text.partition(" ")
    first_words, _, last_word = preposition.rpartition(" ")
    contraction = CONTRACTIONS.get(f"{last_word} {article}")
    # Elision takes precedence: de l'homme.
    is_elided = article == "le" and starts_with_vowel(noun)
    if contraction is None or is_elided or isinstance(phrase.head, Name):
        return f"{preposition} {text}"
    return join_words(first_words, contraction, noun)


def _after_preposition(phrase: Phrase, article: str = "") -> str:
    """Write a phrase in its form after a French preposition, which only pronouns change: "moi".

    Args:
        phrase: The phrase.
        article: What replaces indefinite and partitive articles; see `noun_phrase`.
    """
    if isinstance(phrase.head, Pronoun):
        return phrase.head.stressed
    return noun_phrase(phrase, article)


def starts_with_vowel(text: str) -> bool:
    """Return whether articles are elided before a text."""
    return text.lower().startswith(VOWELS) and not text.startswith(NOT_ELIDING)


def noun_phrase(tree: Phrase | None, article: str = "") -> str:
    """Write a noun phrase in French, before elision: "le chien noir que elle voit".

    Args:
        tree: The phrase; None for an empty text.
        article: What replaces indefinite and partitive articles: `de` after a negation; `bare`, for
            no article, after the preposition `de`. Empty to keep the articles.
    """
    if tree is None:
        return ""
    head = tree.head
    if isinstance(head, Pronoun):
        return head.fr
    if isinstance(head, Name):
        if tree.second_name is None:
            return head.fr
        return f"{head.fr} et {tree.second_name.fr}"
    text = join_words(tree.count.fr, _noun_with_adjective(head, tree))
    has_adjective_first = tree.adjective is not None and tree.adjective.position == "pre"
    determiner_text = determiner(tree, article, text, has_adjective_before_noun=has_adjective_first)
    text = join_words(determiner_text, text)
    if tree.owner is not None and not isinstance(tree.owner.head, Pronoun):
        text = f"{text} {with_preposition('de', tree.owner)}"
    if tree.relative is not None:
        pronoun = "que" if tree.relative.gap == "object" else "qui"
        text = f"{text} {pronoun} {clause(tree.relative)}"
    return text


def _noun_with_adjective(noun: Noun, tree: Phrase) -> str:
    """Write a French noun with its adjective: "un vieux livre", but "un livre intéressant"."""
    text = noun.fr_plural if tree.is_plural else noun.fr
    if tree.adjective is None:
        return text
    noun_agreement = Agreement(noun.fr_gender, tree.is_plural)
    if tree.adjective.position == "pre":
        return f"{adjective_form(tree.adjective, noun_agreement, following=text)} {text}"
    return f"{text} {adjective_form(tree.adjective, noun_agreement)}"


def determiner(
    tree: Phrase, article: str, following: str, *, has_adjective_before_noun: bool
) -> str:
    """Return the French determiner of a noun phrase, before elision: "le", "cet", "des".

    Args:
        tree: The phrase.
        article: What replaces indefinite and partitive articles: `de` or `bare` (none); see
            `noun_phrase`.
        following: The text after it, by which `ce` becomes `cet`.
        has_adjective_before_noun: Whether an adjective precedes the noun.
    """
    if tree.owner is not None and isinstance(tree.owner.head, Pronoun):
        return _possessive(tree, tree.owner.head, following)
    if tree.determiner == "the" or tree.owner is not None:
        return _definite_article(tree)
    if tree.determiner == "this":
        return _demonstrative(tree, following)
    if tree.determiner in QUANTIFIERS:
        return QUANTIFIERS[tree.determiner]
    if tree.determiner == "role" or tree.count:
        return ""
    if article == "de":
        return "de"
    is_singular_a = tree.determiner == "a" and not tree.is_plural
    if article == "bare" and not is_singular_a:
        return ""
    if tree.is_plural:
        # "De beaux arbres", but "des arbres étranges".
        return "de" if has_adjective_before_noun else "des"
    if tree.determiner == "bare":
        return _partitive_article(tree, following)
    return "une" if gender(tree) == "f" else "un"


def _definite_article(tree: Phrase) -> str:
    """Return the form of "the"."""
    if tree.is_plural:
        return "les"
    return "la" if gender(tree) == "f" else "le"


def _possessive(tree: Phrase, owner: Pronoun, following: str) -> str:
    """Return the French possessive of a pronoun, such as "ma", which agrees with the owned noun.

    Args:
        tree: The noun phrase.
        owner: The pronoun.
        following: The text after the possessive.
    """
    masculine, feminine, plural = owner.fr_owner
    if tree.is_plural:
        return plural
    # "Son écharpe", although the scarf is feminine; "notre" and "leur" stay.
    changes_before_vowel = feminine in ("ma", "ta", "sa")
    if changes_before_vowel and starts_with_vowel(following):
        return masculine
    return feminine if gender(tree) == "f" else masculine


def _demonstrative(tree: Phrase, following: str) -> str:
    """Return the French form of "this" before a text: ce, cet, cette or ces."""
    if tree.is_plural:
        return "ces"
    if gender(tree) == "f":
        return "cette"
    return "cet" if starts_with_vowel(following) else "ce"


def _partitive_article(tree: Phrase, following: str) -> str:
    """Return the French article of an amount, before elision: de l'eau, du pain."""
    if gender(tree) == "f":
        return "de la"
    # Not "du": elision makes it "de l'" at the end.
    return "de le" if starts_with_vowel(following) else "du"


def adjective_form(adjective: Adjective, agreement: Agreement, following: str = "") -> str:
    """Return the form of a French adjective for a gender and number: beau, bel, belle, beaux.

    Args:
        adjective: The adjective.
        agreement: The gender and number.
        following: The noun after it, before whose vowel some adjectives differ: `un bel arbre`.
    """
    if agreement.gender == "f":
        return adjective.fr_feminine_plural if agreement.is_plural else adjective.fr_feminine
    if agreement.is_plural:
        return adjective.fr_plural
    if adjective.fr_vowel and starts_with_vowel(following):
        return adjective.fr_vowel
    return adjective.fr
