"""Wrong translations made of references, by hand."""

import pytest

from bleuprint.contrast.perturbations import perturbations
from corpora import TORTURE


def wrong(line: str, language: str, kind: str) -> str | None:
    found = perturbations([line.split(" ")], language, 1).get(kind)
    return " ".join(found[0][1]) if found else None


@pytest.mark.parametrize(
    ("language", "right", "expected"),
    [
        ("de", "Er schläft nicht .", "Er schläft ."),
        ("de", "Keine Katze schläft .", "Eine Katze schläft ."),
        ("de", "Er schläft .", None),
        ("nl", "Hij heeft geen hond .", "Hij heeft een hond ."),
        ("en", "He does not sleep .", "He does sleep ."),
        ("en", "He cannot sleep .", "He can sleep ."),
        ("en", "He won 't sleep .", "He will sleep ."),
        ("en", "He can &apos;t sleep .", "He can sleep ."),
        ("en", "They don 't sleep .", "They do sleep ."),
        ("en", "He did n't sleep .", "He did sleep ."),
        ("fr", "Il n' a pas dormi .", "Il a dormi ."),
        ("fr", "Il ne dort jamais .", "Il dort ."),
        ("fr", "Ce n' est que lui .", None),
        ("es", "No , no duerme .", "No , duerme ."),
        ("ja", "彼 は 寝 ない 。", None),
    ],
)
def test_a_negation_is_dropped(language: str, right: str, expected: str | None) -> None:
    assert wrong(right, language, "negation") == expected


def test_a_digit_is_changed() -> None:
    assert wrong("Um 9 Uhr .", "de", "numeral") == "Um 8 Uhr ."
    assert wrong("seit 10 Jahren", "de", "numeral") in ("seit 20 Jahren", "seit 11 Jahren")
    assert wrong("قبل ٣ سنوات", "ar", "numeral") == "قبل ٤ سنوات"
    assert wrong("x² ohne", "de", "numeral") is None


def test_words_are_swapped_and_the_end_is_cut() -> None:
    assert wrong("Er schläft hier .", "de", "word order") == "Er hier schläft ."
    assert wrong("Er schläft .", "de", "word order") is None
    assert wrong("so so so ,", "de", "word order") is None
    assert wrong("a b c d e f .", "xx", "end") == "a b c d ."
    assert wrong("a b", "xx", "end") is None
    assert wrong("", "de", "end") is None


def test_lines_are_drawn_by_their_text_alone() -> None:
    """At most as many as wanted, and of all lines; the same ones wherever they stand."""
    lines = [[f"w{n}", "und", "nun", "der", "Rest", str(n), "."] for n in range(50)]
    found = perturbations(lines, "de", 10)
    assert set(found) == {"numeral", "word order", "end"}
    turned = perturbations(lines[::-1], "de", 10)
    for kind, drawn in found.items():
        places = [line for line, _ in drawn]
        assert len(places) == 10 and places == sorted(places) and max(places) > 20
        assert dict(drawn) == {49 - n: w for n, w in turned[kind]}
        assert all(words != lines[line] for line, words in drawn)


def test_tokens_with_characters_that_end_lines_elsewhere_are_tokens() -> None:
    for character in TORTURE:
        tokens = ["a", f"b{character}", "c", "d", "."]
        for _, (_, words) in ((k, v[0]) for k, v in perturbations([tokens], "de", 1).items()):
            assert {*words} <= {*tokens}
