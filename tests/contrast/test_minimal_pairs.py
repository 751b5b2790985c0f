"""Minimal pairs of the grammar: by hand, and that no wrong one is a translation of its source."""

from collections import Counter, defaultdict

import pytest

from bleuprint.contrast.minimal_pairs import Contrast, minimal_pairs
from bleuprint.corpus.phrasebook import LANGUAGES, SPLITS, generate

KINDS = (
    "number",
    "numeral",
    "name",
    "negation",
    "tense",
    "agreement",
    "gender",
    "case",
    "word order",
)
# Of each phenomenon: source, right, wrong.
BY_HAND = {
    "de": """
number|Linda is in the office.|Linda ist im Büro.|Linda ist in den Büros.
number|You had a white dog.|Du hattest einen weißen Hund.|Du hattest weiße Hunde.
numeral|He loves two big cats.|Er liebt zwei große Katzen.|Er liebt vier große Katzen.
name|Where did Simon dance?|Wo hat Simon getanzt?|Wo hat Paul getanzt?
negation|I was not in the house.|Ich war nicht im Haus.|Ich war im Haus.
tense|Whom did I answer?|Wem habe ich geantwortet?|Wem antworte ich?
agreement|A candle is red.|Eine Kerze ist rot.|Eine Kerze sind rot.
gender|The ticket is red.|Die Fahrkarte ist rot.|Das Fahrkarte ist rot.
case|Whom did I answer?|Wem habe ich geantwortet?|Wen habe ich geantwortet?
case|You congratulated doctors.|Du hast Ärzten gratuliert.|Du hast Ärzte gratuliert.
word order|Linda is in the office.|Linda ist im Büro.|Linda im Büro ist.
""",
    "fr": """
number|Linda is in the office.|Linda est dans le bureau.|Linda est dans les bureaux.
numeral|The nine men were hungry.|Les neuf hommes avaient faim.|Les douze hommes avaient faim.
name|Robert has these lions.|Robert a ces lions.|David a ces lions.
negation|The soldier worked.|Le soldat a travaillé.|Le soldat n'a pas travaillé.
tense|The meeting begins.|La réunion commence.|La réunion a commencé.
agreement|The soldier worked.|Le soldat a travaillé.|Le soldat ont travaillé.
gender|The forest is pretty.|La forêt est jolie.|Le forêt est joli.
case|I know her.|Je la connais.|Je lui connais.
word order|She knows me.|Elle me connaît.|Elle connaît me.
""",
}


@pytest.mark.parametrize("target", BY_HAND)
def test_pairs_by_hand(target: str) -> None:
    pairs = minimal_pairs("en", target)
    for line in BY_HAND[target].strip().split("\n"):
        kind, *texts = line.split("|")
        assert Contrast(*texts) in pairs[kind], line


@pytest.mark.parametrize("target", BY_HAND)
def test_every_phenomenon_has_pairs_of_new_sentences_that_differ(target: str) -> None:
    pairs = minimal_pairs("en", target)
    assert tuple(pairs) == KINDS
    rows = [row for split in SPLITS for row in generate(split)]
    known = {row[0] for row in rows}
    # all translations that the grammar gives of a sentence
    valid = defaultdict(set)
    for row in rows:
        valid[row[0]].add(row[LANGUAGES.index(target)])
    for each in (each for of_kind in pairs.values() for each in of_kind):
        valid[each.source].add(each.right)
    for kind, of_kind in pairs.items():
        assert len({each.source for each in of_kind}) == len(of_kind) == 100, kind
        for each in of_kind:
            assert each.source not in known
            assert each.wrong not in valid[each.source] and each.right != each.wrong
            assert each.wrong[0].isupper() and each.wrong[-1] == each.right[-1]


def words(sentence: str) -> list[str]:
    return sentence.lower().rstrip(".?").replace(",", "").split()


def test_what_differs_is_the_phenomenon() -> None:
    pairs = minimal_pairs("en", "de")
    for kind in ("agreement", "numeral"):
        for _, right, wrong in pairs[kind]:
            assert sum(a != b for a, b in zip(words(right), words(wrong), strict=True)) == 1
    for _, right, wrong in pairs["name"]:
        changed = [(a, b) for a, b in zip(right.split(), wrong.split(), strict=True) if a != b]
        assert len(changed) == 1 and changed[0][0][0].isupper()
    for _, right, wrong in pairs["case"]:
        assert abs(len(words(right)) - len(words(wrong))) <= 1  # im, in den
    for _, right, wrong in pairs["word order"]:
        # a separable verb is one word, or two
        assert sorted("".join(words(right))) == sorted("".join(words(wrong)))
    for _, right, wrong in pairs["negation"]:
        none = [sum(w == "nicht" or w.startswith("kein") for w in words(s)) for s in (right, wrong)]
        assert abs(none[0] - none[1]) == 1
    for _, right, wrong in minimal_pairs("en", "fr")["agreement"]:
        left = Counter(words(right)) - Counter(words(wrong))
        assert 1 <= sum(left.values()) <= 2  # j'ai, je avons


def test_they_are_the_same_for_every_source_language_and_every_time() -> None:
    assert [each.right for each in minimal_pairs("en", "de", 3)["number"]] == [
        each.right for each in minimal_pairs("en", "de")["number"][:3]
    ]
    assert len(minimal_pairs("fr", "de", 2)["case"]) == 2
