"""French: agreement, clitics, elision and contraction."""

from __future__ import annotations

import re
from functools import cache

from bleuprint.corpus.phrasebook.lexicon import Adjective, Name, Noun, Pronoun, Verb, Weather
from bleuprint.corpus.phrasebook.trees import Clause, Phrase, Place, Sentence

AVOIR = ("ai", "as", "a", "avons", "ont")
ETRE = ("suis", "es", "est", "sommes", "sont")
ALLER = ("vais", "vas", "va", "allons", "vont")
IMPERFECT = {
    "être": ("étais", "étais", "était", "étions", "étaient"),
    "avoir": ("avais", "avais", "avait", "avions", "avaient"),
}
ENDINGS = ("e", "es", "e", "ons", "ent")
VOWELS = tuple("aâàeéèêiîoôœuh")
NOT_ELIDING = ("huit", "onze")
CONTRACTIONS = {"de le": "du", "de les": "des", "à le": "au", "à les": "aux"}
ASKED = {
    "yesno": "est-ce que",
    "where": "où est-ce que",
    "when": "quand est-ce que",
    "why": "pourquoi est-ce que",
    "what": "qu'est-ce que",
    "whom": "qui est-ce que",
    "who": "qui",
}
# A clitic, an article or a conjunction loses its vowel before another one.
ELISION = re.compile(
    r"\b([JjMmTtSsNnDdLl]e|[Ll]a|[Qq]ue) (?!huit|onze)(?=[aâàeéèêiîoôœuhAEÉIO]|y )"
)
SI_IL = re.compile(r"\b([Ss])i (?=ils?\b)")


def sentence(tree: Sentence) -> str:
    text, second, link = clause(tree.clause), tree.second, tree.link
    if tree.ask:
        text = question(tree)
    elif second is not None and link is not None:
        other = second.fr if isinstance(second, Weather) else clause(second)
        if tree.first:
            text = f"{link.fr} {other}, {text}"
        else:
            text = f"{text}{',' if link.fr == 'mais' else ''} {link.fr} {other}"
    text = elided(text)
    return text[0].upper() + text[1:] + (" ?" if tree.ask else ".")


def question(tree: Sentence) -> str:
    text = f"{ASKED[tree.ask]} {clause(tree.clause)}"
    if tree.ask == "whom" and tree.clause.verb.fr_government:
        return "à " + text  # à qui
    return text


def elided(text: str) -> str:
    return SI_IL.sub(r"\1'", ELISION.sub(lambda match: match[1][:-1] + "'", text))


def clause(tree: Clause) -> str:
    subject = noun_phrase(tree.subject) if tree.subject is not None else ""
    if "exist" in tree.verb.traits:
        subject = "il"
    time = tree.time.fr if tree.time is not None else ""
    words = [subject, predicate(tree), *complements(tree)]
    if tree.fronted:
        words[0] = f"{time}, {subject}"
    else:
        words.append(time)
    if tree.infinitive is not None:
        words.append(infinitive(tree.infinitive, linker(tree.verb)))
    if tree.purpose is not None:
        words.append(infinitive(tree.purpose, "pour"))
    return " ".join(filter(None, words))


def linker(verb: Verb) -> str:
    """The preposition between a verb and its infinitive."""
    return next((trait[4:] for trait in verb.traits if trait.startswith("inf:")), "")


def infinitive(tree: Clause, marker: str) -> str:
    time = tree.time.fr if tree.time is not None else ""
    words = [marker, clitic(tree), tree.verb.fr, *complements(tree), time]
    return " ".join(filter(None, words))


def predicate(tree: Clause) -> str:
    """Clitics, negation and all parts of the verb."""
    verb, modal, person = tree.verb, tree.modal, tree.person
    before, rest = clitic(tree), ""
    if tree.tense == "future" or modal is not None:
        rest = f"{before} {verb.fr}".lstrip()
        before = ""
    if tree.tense == "future":
        finite = ALLER[person]
    elif modal is not None:
        finite = (modal.fr_past if tree.tense == "past" else modal.fr)[person]
    elif tree.tense == "progressive":
        finite, rest, before = ETRE[person], f"en train de {before} {verb.fr}", ""
    elif tree.tense == "past" and verb.fr in IMPERFECT:
        finite = IMPERFECT[verb.fr][person]
    elif tree.tense == "past":
        finite, rest = (ETRE if verb.fr_auxiliary else AVOIR)[person], past_participle(tree)
    else:
        finite = present(verb)[person]
    adverb = tree.frequency.fr if tree.frequency else ""
    negative = "ne" if tree.negative or adverb == "jamais" or lacks(tree) else ""
    adverb = "pas" if tree.negative else adverb
    return " ".join(" ".join((negative, before, finite, adverb, rest)).split())


def lacks(tree: Clause) -> bool:
    """Whether the complement brings its own `pas`."""
    return tree.complement is not None and tree.complement.fr.startswith("pas ")


def clitic(tree: Clause) -> str:
    """The one pronoun that stands before the verb."""
    verb = tree.verb
    if "exist" in verb.traits:
        return "y"
    if verb.reflexive in ("fr", "both"):
        head = tree.subject.head if tree.subject is not None else None
        return head.fr_reflexive if isinstance(head, Pronoun) else "se"
    if tree.recipient is not None and isinstance(tree.recipient.head, Pronoun):
        return tree.recipient.head.indirect
    if tree.object is not None and isinstance(tree.object.head, Pronoun):
        if verb.fr_government == "à*":
            return tree.object.head.indirect
        return "" if verb.fr_government else tree.object.head.clitic
    return ""


def past_participle(tree: Clause) -> str:
    """Agrees with the subject after être, and with a direct object that stands before avoir."""
    verb, text = tree.verb, participle(tree.verb)
    if verb.fr_auxiliary:
        if tree.subject is None:
            return agreed(text, tree.gap_gender, tree.gap_plural)
        return agreed(text, gender(tree.subject), is_plural(tree.subject))
    if tree.gap == "object" and not verb.fr_government:
        return agreed(text, tree.gap_gender, tree.gap_plural)
    target = tree.object
    if target is not None and isinstance(target.head, Pronoun) and not verb.fr_government:
        return agreed(text, gender(target), is_plural(target))
    return text


def agreed(text: str, gender_: str, plural_: bool) -> str:
    """A participle with its endings."""
    text += "e" if gender_ == "f" else ""
    return text + ("s" if plural_ and not text.endswith("s") else "")


def gender(tree: Phrase) -> str:
    if isinstance(tree.head, Noun):
        return tree.head.fr_gender
    both = tree.other is None or tree.other.sex == "f"
    return "f" if tree.head.sex == "f" and both else "m"


def is_plural(tree: Phrase) -> bool:
    return tree.head.person in "34" if isinstance(tree.head, Pronoun) else tree.plural


def complements(tree: Clause) -> list[str]:
    """All that follows the verb, up to the time."""
    verb, target = tree.verb, tree.object
    words = [tree.manner.fr] if tree.manner is not None else []
    if target is not None and (verb.fr_government or not isinstance(target.head, Pronoun)):
        words.append(object_phrase(tree, target))
    if tree.complement is not None:
        words.append(tree.complement.fr)
    if tree.adjective is not None:
        words.append(predicate_adjective(tree, tree.adjective))
    if tree.recipient is not None and not isinstance(tree.recipient.head, Pronoun):
        words.append(with_preposition("à", tree.recipient))
    if tree.companion is not None:
        preposition, phrase = tree.companion
        words.append(with_preposition(preposition.fr, phrase))
    if tree.place is not None:
        words.append(place(tree.place))
    return words


def object_phrase(tree: Clause, target: Phrase) -> str:
    preposition = tree.verb.fr_government
    if not preposition:
        never = tree.frequency is not None and tree.frequency.fr == "jamais"
        none = (tree.negative or never) and "copula" not in tree.verb.traits
        return noun_phrase(target, "de" if none else "")
    if preposition == "à*" and isinstance(target.head, Pronoun):
        return ""
    return with_preposition(preposition.rstrip("*"), target)


def predicate_adjective(tree: Clause, adjective: Adjective) -> str:
    if tree.subject is None:
        text = inflected(adjective, tree.gap_gender, tree.gap_plural)
    else:
        text = inflected(adjective, gender(tree.subject), is_plural(tree.subject))
    return text if tree.than is None else f"plus {text} que {stressed(tree.than)}"


def place(tree: Place) -> str:
    if tree.preposition is not None:
        return with_preposition(tree.preposition.fr, tree.phrase)
    if isinstance(tree.phrase.head, Noun):
        return with_preposition(tree.phrase.head.place[5 + (tree.relation == "to")], tree.phrase)
    country = isinstance(tree.phrase.head, Name) and tree.phrase.head.kind == "country"
    preposition = "de" if tree.relation == "from" else "en" if country else "à"
    return f"{preposition} {noun_phrase(tree.phrase)}"


def with_preposition(preposition: str, tree: Phrase) -> str:
    """The phrase after a preposition: `de` and `à` melt with le and les, and `de` takes the
    place of des."""
    after_de = preposition == "de" or preposition.endswith(" de")
    text = stressed(tree, "bare" if after_de else "")
    start, _, rest = text.partition(" ")
    head, _, last = preposition.rpartition(" ")
    melted = CONTRACTIONS.get(f"{last} {start}")
    if melted and not (start == "le" and elides(rest)) and not isinstance(tree.head, Name):
        return f"{head} {melted} {rest}".lstrip()
    return f"{preposition} {text}"


def stressed(tree: Phrase, article: str = "") -> str:
    return tree.head.stressed if isinstance(tree.head, Pronoun) else noun_phrase(tree, article)


def elides(text: str) -> bool:
    return text.lower().startswith(VOWELS) and not text.startswith(NOT_ELIDING)


def noun_phrase(tree: Phrase, article: str = "") -> str:
    """`article` replaces the indefinite and partitive ones: by `de` (negation) or `bare`."""
    head = tree.head
    if isinstance(head, Pronoun):
        return head.fr
    if isinstance(head, Name):
        return head.fr if tree.other is None else f"{head.fr} et {tree.other.fr}"
    core = head.fr if not tree.plural else plural(head)
    adjective = tree.adjective
    if adjective is not None:
        if adjective.position == "pre":
            core = f"{inflected(adjective, head.fr_gender, tree.plural, core)} {core}"
        else:
            core = f"{core} {inflected(adjective, head.fr_gender, tree.plural)}"
    core = f"{tree.count.fr} {core}" if tree.count else core
    before = determiner(tree, article, adjective is not None and adjective.position == "pre", core)
    text = f"{before} {core}".lstrip()
    if tree.owner is not None and not isinstance(tree.owner.head, Pronoun):
        text = f"{text} {with_preposition('de', tree.owner)}"
    if tree.relative is not None:
        text = f"{text} {'que' if tree.relative.gap == 'object' else 'qui'} {clause(tree.relative)}"
    return text


def determiner(tree: Phrase, article: str, adjective_first: bool, core: str) -> str:
    """The article before `core`, in full: elision comes last."""
    kind, feminine = tree.det, gender(tree) == "f"
    vowel = elides(core)
    if tree.owner is not None and isinstance(tree.owner.head, Pronoun):
        owner = tree.owner.head.fr_owner
        return owner[2] if tree.plural else owner[feminine and not (vowel and len(owner[1]) == 2)]
    if kind == "the" or tree.owner is not None:
        return "les" if tree.plural else "la" if feminine else "le"
    if kind == "this":
        return "ces" if tree.plural else "cette" if feminine else "cet" if vowel else "ce"
    if kind in ("many", "some", "every"):
        return {"many": "beaucoup de", "some": "quelques", "every": "chaque"}[kind]
    if kind == "role" or tree.count is not None:
        return ""
    if article == "de" or (article and (tree.plural or kind == "bare")):
        return "" if article == "bare" else "de"
    if tree.plural:
        return "de" if adjective_first else "des"
    if kind == "bare":
        return "de la" if feminine else "de le" if vowel else "du"
    return "une" if feminine else "un"


def inflected(adjective: Adjective, gender_: str, plural_: bool, following: str = "") -> str:
    text = (adjective.fr_feminine or adjective.fr) if gender_ == "f" else adjective.fr
    if plural_:
        if text.endswith("eau"):
            return text + "x"
        return text if text.endswith(("s", "x")) else text + "s"
    if gender_ == "m" and adjective.fr_vowel and following and elides(following):
        return adjective.fr_vowel
    return text


@cache
def plural(noun: Noun) -> str:
    if noun.fr_plural:
        return noun.fr_plural
    word = noun.fr
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith("al"):
        return word[:-2] + "aux"
    return word + ("x" if word.endswith("eau") else "s")


@cache
def present(verb: Verb) -> tuple[str, ...]:
    """The forms for je, tu, il, nous, ils: from the table, or those of a verb in -er."""
    if verb.fr_present:
        return verb.fr_present
    root = verb.fr[:-2]
    soft = {"g": root + "e", "c": root[:-1] + "ç"}.get(root[-1], root)
    return tuple((soft if ending == "ons" else root) + ending for ending in ENDINGS)


@cache
def participle(verb: Verb) -> str:
    return verb.fr_participle or verb.fr[:-2] + "é"
