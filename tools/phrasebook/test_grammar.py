"""The grammar of the embedded corpus, against hand-written forms."""

from dataclasses import replace

import pytest

from tools.phrasebook import english, french, german, lexicon
from tools.phrasebook.lexicon import Adjective, Noun, Verb, Words, verbs
from tools.phrasebook.trees import Clause, Phrase, Place, Sentence


def noun(en: str) -> Noun:
    return next(entry for entry in lexicon.NOUNS if entry.en == en)


def adjective(en: str) -> Adjective:
    return next(entry for entry in lexicon.ADJECTIVES if entry.en == en)


def verb(en: str, particle: str = "") -> Verb:
    entries = (entry for entry in lexicon.VERBS if (entry.en, entry.particle) == (en, particle))
    return next(entries)


def words(en: str) -> Words:
    rows = (*lexicon.ADVERBS, *lexicon.NUMBERS, *lexicon.CONJUNCTIONS)
    return next(row for row in rows if row.en == en)


def the(en: str, det: str = "the", plural: bool = False, adj: str = "") -> Phrase:
    return Phrase(noun(en), det, plural, adjective=adjective(adj) if adj else None)


def name(en: str, other: str = "") -> Phrase:
    names = {entry.en: entry for entry in lexicon.NAMES}
    return Phrase(names[en], plural=bool(other), second_name=names[other] if other else None)


def pro(en: str) -> Phrase:
    entry = next(entry for entry in lexicon.PRONOUNS if entry.en == en)
    return Phrase(entry, plural=entry.person in "34")


def written(tree: Clause | Sentence) -> tuple[str, str, str]:
    """Return a tree in English, German and French."""
    tree = Sentence(tree) if isinstance(tree, Clause) else tree
    return english.sentence(tree), german.sentence(tree), french.sentence(tree)


PAUL, ANNA = name("Paul"), name("Anna")
CALL = Clause(verb("call"), PAUL, object=ANNA)


DECLENSION = {
    ("the", "dog", False): "der alte Hund|den alten Hund|dem alten Hund|des alten Hundes",
    ("the", "cat", False): "die alte Katze|die alte Katze|der alten Katze|der alten Katze",
    ("the", "horse", False): "das alte Pferd|das alte Pferd|dem alten Pferd|des alten Pferdes",
    ("the", "dog", True): "die alten Hunde|die alten Hunde|den alten Hunden|der alten Hunde",
    ("this", "cow", False): "diese alte Kuh|diese alte Kuh|dieser alten Kuh|dieser alten Kuh",
    ("a", "dog", False): "ein alter Hund|einen alten Hund|einem alten Hund|eines alten Hundes",
    ("a", "cat", False): "eine alte Katze|eine alte Katze|einer alten Katze|einer alten Katze",
    ("a", "horse", False): "ein altes Pferd|ein altes Pferd|einem alten Pferd|eines alten Pferdes",
    ("bare", "dog", True): "alte Hunde|alte Hunde|alten Hunden|alter Hunde",
    ("some", "egg", True): "einige alte Eier|einige alte Eier"
    "|einigen alten Eiern|einiger alter Eier",
    ("the", "bear", False): "der alte Bär|den alten Bären|dem alten Bären|des alten Bären",
}  # fmt: skip


@pytest.mark.parametrize(("det", "head", "plural"), DECLENSION)
def test_german_declension(det: str, head: str, plural: bool) -> None:
    forms = [german.noun_phrase(the(head, det, plural, "old"), case) for case in "nadg"]
    assert "|".join(forms) == DECLENSION[det, head, plural]


def test_german_possessives_and_kein_decline_like_ein() -> None:
    daughters = Phrase(noun("daughter"), "own", True, words("three"), adjective("old"), pro("she"))
    assert german.noun_phrase(daughters, "d") == "ihren drei alten Töchtern"
    assert german.noun_phrase(the("dog", "a", adj="old"), "a", negated=True) == "keinen alten Hund"
    assert (
        german.noun_phrase(the("dog", "bare", True, "old"), "n", negated=True)
        == "keine alten Hunde"
    )
    brother = Phrase(noun("brother"), "own", adjective=adjective("old"), owner=ANNA)
    assert german.noun_phrase(brother, "n") == "Annas alter Bruder"
    assert german.noun_phrase(the("bicycle", adj="expensive"), "d") == "dem teuren Fahrrad"


def test_english_articles() -> None:
    phrases = [the("apple", "a"), the("university", "a"), the("egg", "a", adj="small")]
    assert [english.noun_phrase(p) for p in phrases] == ["an apple", "a university", "a small egg"]
    honest = the("man", "a", adj="honest")
    assert english.noun_phrase(honest) == "an honest man"


@pytest.mark.parametrize(
    ("preposition", "phrase", "text"),
    [
        ("de", the("cat"), "du chat"),
        ("de", the("cat", plural=True), "des chats"),
        ("de", the("man"), "de l'homme"),
        ("de", the("woman"), "de la femme"),
        ("de", the("cat", "a", plural=True), "de chats"),
        ("à", the("museum"), "au musée"),
        ("à", the("child", plural=True), "aux enfants"),
        ("à", the("school"), "à l'école"),
        ("à côté de", the("garden"), "à côté du jardin"),
        ("avec", pro("they"), "avec eux"),
        ("de", name("Anna"), "d'Anna"),
        ("de", name("Leon"), "de Leon"),
    ],
)
def test_french_contractions(preposition: str, phrase: Phrase, text: str) -> None:
    assert french.elided(french.with_preposition(preposition, phrase)) == text


@pytest.mark.parametrize(
    ("phrase", "article", "text"),
    [
        (the("man", "a", adj="old"), "", "un vieil homme"),
        (the("woman", "a", adj="old"), "", "une vieille femme"),
        (the("man", "this"), "", "cet homme"),
        (the("tree", "the", True, "beautiful"), "", "les beaux arbres"),
        (the("tree", "bare", True, "beautiful"), "", "de beaux arbres"),
        (the("tree", "bare", True, "strange"), "", "des arbres étranges"),
        (the("dress", "the", True, "white"), "", "les robes blanches"),
        (the("horse", "many", True), "", "beaucoup de chevaux"),
        (the("water", "bare"), "", "de l'eau"),
        (the("bread", "bare"), "", "du pain"),
        (the("bread", "bare"), "de", "de pain"),
        (the("orange", "a"), "de", "d'orange"),
        (Phrase(noun("scarf"), "own", owner=pro("she")), "", "son écharpe"),
        (Phrase(noun("car"), "own", owner=pro("he")), "", "sa voiture"),
        (Phrase(noun("potato"), "the", True), "", "les pommes de terre"),
    ],
)
def test_french_noun_phrases(phrase: Phrase, article: str, text: str) -> None:
    assert french.elided(french.noun_phrase(phrase, article)) == text


def test_separable_verbs() -> None:
    know = Clause(next(v for v in verbs("that") if v.de == "wissen"), pro("I"))
    tries = Clause(verb("try"), PAUL, infinitive=CALL)
    can = replace(CALL, modal=lexicon.MODALS[0])
    assert written(CALL)[1] == "Paul ruft Anna an."
    assert written(Sentence(CALL, "yesno"))[1] == "Ruft Paul Anna an?"
    assert written(Sentence(know, "", words("that"), CALL))[1] == "Ich weiß, dass Paul Anna anruft."
    assert written(replace(CALL, tense="past"))[1] == "Paul hat Anna angerufen."
    assert written(replace(CALL, tense="future"))[1] == "Paul wird Anna anrufen."
    assert written(can)[1] == "Paul kann Anna anrufen."
    assert written(tries)[1] == "Paul versucht, Anna anzurufen."


def test_a_relative_clause_and_a_possessive_in_all_languages() -> None:
    seen = Clause(verb("see"), pro("we"), "past", gap="object", gap_gender="m")
    man = replace(the("man", adj="old"), relative=seen)
    daughters = Phrase(noun("daughter"), "own", True, words("three"), owner=pro("he"))
    assert written(Clause(verb("call"), man, object=daughters)) == (
        "The old man whom we saw calls his three daughters.",
        "Der alte Mann, den wir gesehen haben, ruft seine drei Töchter an.",
        "Le vieil homme que nous avons vu appelle ses trois filles.",
    )


def test_relative_pronouns_take_their_case_from_their_clause() -> None:
    helped = Clause(verb("help"), PAUL, "past", gap="object", gap_plural=True)
    women = replace(the("woman", plural=True), relative=replace(helped, gap_gender="f"))
    assert written(Clause(verb("sleep"), women)) == (
        "The women whom Paul helped sleep.",
        "Die Frauen, denen Paul geholfen hat, schlafen.",
        "Les femmes que Paul a aidées dorment.",
    )


def test_adverbs_move_the_german_verb_and_subject() -> None:
    tree = replace(CALL, tense="past", time=words("yesterday"), fronted=True)
    assert written(tree) == (
        "Yesterday, Paul called Anna.",
        "Gestern hat Paul Anna angerufen.",
        "Hier, Paul a appelé Anna.",
    )
    rests = Clause(verb("rest"), the("man"), time=words("now"), fronted=True)
    assert written(rests)[1] == "Jetzt ruht sich der Mann aus."


def test_subordinate_clauses_first_and_last() -> None:
    rain = lexicon.WEATHER[0]
    assert written(Sentence(CALL, "", words("if"), rain, second_first=True)) == (
        "If it is raining, Paul calls Anna.",
        "Wenn es regnet, ruft Paul Anna an.",
        "S'il pleut, Paul appelle Anna.",
    )
    assert written(Sentence(CALL, "", words("because"), replace(CALL, subject=pro("he"))))[1:] == (
        "Paul ruft Anna an, weil er Anna anruft.",
        "Paul appelle Anna parce qu'il appelle Anna.",
    )


def test_negation() -> None:
    buys = Clause(verb("buy"), pro("I"), negative=True)
    assert written(replace(buys, object=the("car", "a"))) == (
        "I do not buy a car.",
        "Ich kaufe kein Auto.",
        "Je n'achète pas de voiture.",
    )
    assert written(replace(buys, object=the("car"), tense="past")) == (
        "I did not buy the car.",
        "Ich habe das Auto nicht gekauft.",
        "Je n'ai pas acheté la voiture.",
    )
    never = replace(buys, negative=False, frequency=words("never"))
    assert written(replace(never, object=the("bread", "bare"))) == (
        "I never buy bread.",
        "Ich kaufe nie Brot.",
        "Je n'achète jamais de pain.",
    )


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (Clause(verb("leave"), pro("she"), "past"), "Elle est partie."),
        (Clause(verb("leave"), name("Anna", "Julia"), "past"), "Anna et Julia sont parties."),
        (Clause(verb("leave"), name("Anna", "Paul"), "past"), "Anna et Paul sont partis."),
        (Clause(verb("get", "up"), pro("we"), "past"), "Nous nous sommes levés."),
        (
            Clause(verb("sit", "down"), the("lady", plural=True), "past"),
            "Les dames se sont assises.",
        ),
        (Clause(verb("see"), pro("he"), "past", pro("she")), "Il l'a vue."),
        (Clause(verb("see"), pro("he"), "past", the("woman")), "Il a vu la femme."),
        (Clause(verb("answer"), pro("he"), "past", pro("she")), "Il lui a répondu."),
        (Clause(verb("talk", "with"), pro("he"), "past", pro("she")), "Il a parlé avec elle."),
    ],
)
def test_french_perfect_and_clitics(tree: Clause, text: str) -> None:
    assert french.sentence(Sentence(tree)) == text


def test_clitics_stand_before_the_infinitive() -> None:
    tree = Clause(verb("look", "for"), pro("I"), "future", pro("he"))
    assert written(tree) == (
        "I will look for him.",
        "Ich werde ihn suchen.",
        "Je vais le chercher.",
    )
    tree = Clause(verb("take", "part in"), pro("I"), object=the("concert"))
    assert written(tree)[1:] == ("Ich nehme am Konzert teil.", "Je participe au concert.")
    tree = Clause(verb("give"), pro("I"), object=the("book"), recipient=pro("they"))
    assert written(tree) == (
        "I give them the book.",
        "Ich gebe ihnen das Buch.",
        "Je leur donne le livre.",
    )


def test_questions() -> None:
    buying = replace(CALL, verb=verb("buy"), object=None, tense="past")
    assert written(Sentence(buying, "what")) == (
        "What did Paul buy?",
        "Was hat Paul gekauft?",
        "Qu'est-ce que Paul a acheté ?",
    )
    calling = replace(CALL, subject=None)
    assert written(Sentence(calling, "who")) == (
        "Who calls Anna?",
        "Wer ruft Anna an?",
        "Qui appelle Anna ?",
    )
    answering = Clause(verb("answer"), pro("he"))
    assert written(Sentence(answering, "whom")) == (
        "Whom does he answer?",
        "Wem antwortet er?",
        "À qui est-ce qu'il répond ?",
    )


def test_places_take_rest_or_direction() -> None:
    to_garden = Place("to", the("garden"))
    assert german.place_phrase(to_garden) == "in den Garten"
    assert german.place_phrase(replace(to_garden, relation="at")) == "im Garten"
    assert german.place_phrase(Place("to", the("station"))) == "zum Bahnhof"
    assert french.place_phrase(Place("to", the("station"))) == "à la gare"
    assert german.place_phrase(Place("to", name("France"))) == "nach Frankreich"
    assert french.place_phrase(Place("to", name("France"))) == "en France"
    assert french.elided(french.place_phrase(Place("from", name("Italy")))) == "d'Italie"


def test_copula_agrees_and_compares() -> None:
    older = Clause(verbs("copula")[0], the("woman"), adjective=adjective("old"), than=PAUL)
    assert written(older) == (
        "The woman is older than Paul.",
        "Die Frau ist älter als Paul.",
        "La femme est plus vieille que Paul.",
    )


def test_every_entry_is_known_by_its_class() -> None:
    known_classes = {"city"}
    for entry in lexicon.NOUNS:
        known_classes.update(entry.classes)
    for entry in lexicon.VERBS:
        places = [place.rpartition(":")[2].rstrip("!") for place in entry.place]
        assert {*entry.subject, *entry.object, *places} <= known_classes, entry.en
    assert [entry.person for entry in lexicon.PRONOUNS] == ["0", "1", "2", "2", "3", "4"]
