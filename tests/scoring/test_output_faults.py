"""Faults of translations: counted by hand, and tested as McNemar does."""

import dataclasses
from math import comb
from pathlib import Path

import pytest

import result_trees as trees
from bleuprint.config.corpus import Corpus
from bleuprint.scoring.output_faults import (
    ANY,
    LANGUAGE,
    NAMES,
    Fault,
    has_loop,
    is_balanced,
    output_faults,
    paired_p,
    wilson,
)
from bleuprint.text.tokenizers import Tokenize, tokenizer_for
from scoring import SEPARATORS

SOURCE = "Anna pays 20 euros (not more) to {name} in the old town of Vienna."
GOOD = "Anna zahlt 20 Euro (nicht mehr) an {name} in der Altstadt von Wien."


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """From English to German; tokens are separated by spaces."""
    corpus = trees.settings_in(tmp_path).corpus("news-en-de")
    return dataclasses.replace(corpus, tokenize=dataclasses.replace(corpus.tokenize, name="none"))


def found(corpus: Corpus, source: str, reference: str, output: str) -> set[str]:
    return {f["name"] for f in output_faults([source], [reference], [output], corpus) if f["lines"]}


@pytest.mark.parametrize(
    ("output", "faults"),
    [
        (GOOD, set()),
        (" \u00a0", {"empty"}),
        ("Anna zahlt (20) {name}.", {"too short"}),
        (GOOD + " und dann noch mehr", set()),
        ("Anna paie 20 euros (pas plus) à {name} dans la vieille ville.", {LANGUAGE}),
        (SOURCE.lower(), {LANGUAGE, "source copied"}),
        (GOOD.replace("20", "21"), {"numbers"}),
        (GOOD.replace("20 ", ""), {"numbers"}),
        (GOOD.replace("{name}", "Name"), {"URLs, placeholders"}),
        (GOOD.replace("der", "der der der"), {"loop"}),
        (GOOD.replace("der", "der der"), set()),
        (GOOD.replace("Altstadt", "<unk>"), {"unknown token"}),
        (GOOD.replace("mehr)", "mehr"), {"brackets"}),
    ],
)
def test_each_fault_is_seen_alone(corpus: Corpus, output: str, faults: set[str]) -> None:
    assert found(corpus, SOURCE, GOOD, output) == faults | ({ANY} if faults else set())


def test_too_long_is_more_than_three_times_the_source(corpus: Corpus) -> None:
    source, reference = "Good morning", "Guten Morgen"
    six = "Guten Morgen und einen schönen Tag"
    assert found(corpus, source, reference, six) == set()
    assert found(corpus, source, reference, f"{six} euch") == {ANY, "too long"}


def test_addresses_have_to_be_kept(corpus: Corpus) -> None:
    source = "Write to anna@example.org, or see https://example.org/a."
    good = "Schreiben Sie an anna@example.org, oder siehe https://example.org/a!"
    assert found(corpus, source, good, good.replace("!", ".")) == set()
    for bad in (good.replace("/a", "/b"), good.replace("anna@", "ana@")):
        assert found(corpus, source, good, bad) == {ANY, "URLs, placeholders"}


@pytest.mark.parametrize(
    "copied", ["name@host.org", "http://a.b/c?d=e", "%(count)s", "1'000", "9:15"]
)
def test_what_the_tokenizer_changes_is_no_fault(corpus: Corpus, copied: str) -> None:
    """Plain Moses prints `name @ host.org`, `% (count) s`, `1 '000`."""
    plain = Tokenize("moses", lowercase=False, hyphens=False, escape=False, plain=True)
    corpus = dataclasses.replace(corpus, tokenize=plain)
    moses = tokenizer_for("de", plain)
    source, good = SOURCE.replace("{name}", copied), GOOD.replace("{name}", copied)
    printed = moses.detokenize(moses.tokenize(good))
    assert printed != good
    assert found(corpus, source, good, printed) == set()
    lost = {"numbers"} if copied[0].isdigit() else {"URLs, placeholders"}
    assert found(corpus, source, good, GOOD.replace("{name}", "Anna")) == {ANY, *lost}


def test_counts_by_hand_without_the_lines_whose_reference_has_the_fault(corpus: Corpus) -> None:
    sources = ["The house has 3 rooms."] * 4
    references = ["Das Haus hat drei Zimmer.", *["Das Haus hat 3 Zimmer."] * 3]
    # the first loses the number as its reference does, but is unbalanced, too
    outputs = [
        "Das Haus hat drei (Zimmer.",
        "Das Haus hat Zimmer.",
        "Das Haus hat 3 Zimmer.",
        "Das Haus hat 4 <unk>.",
    ]
    faults = {fault["name"]: fault for fault in output_faults(sources, references, outputs, corpus)}
    assert tuple(faults) == NAMES
    assert faults["numbers"] == Fault(name="numbers", lines=[2, 4], of=3, references=1)
    assert faults["brackets"] == Fault(name="brackets", lines=[1], of=4, references=0)
    assert faults["unknown token"]["lines"] == [4]
    assert faults[ANY] == Fault(name=ANY, lines=[1, 2, 4], of=4, references=1)
    # the references themselves have no fault of their own
    assert not any(f["lines"] for f in output_faults(sources, references, references, corpus))


def test_a_language_that_cannot_be_identified(corpus: Corpus) -> None:
    toy = dataclasses.replace(corpus, source="xx", target="yy")
    names = [fault["name"] for fault in output_faults(["1 2"], ["1 2"], ["1 3"], toy)]
    assert names == [name for name in NAMES if name != LANGUAGE]


@pytest.mark.parametrize("separator", [*SEPARATORS, "\0", "\ufeff"])
def test_odd_characters(corpus: Corpus, separator: str) -> None:
    assert found(corpus, SOURCE, GOOD, separator) == {ANY, "empty"}
    assert found(corpus, SOURCE, GOOD, GOOD.replace(" ", separator, 1)) <= {ANY, "loop"}
    assert found(corpus, separator, GOOD, GOOD) == set()


def test_what_does_not_print_is_no_difference(corpus: Corpus) -> None:
    marked = SOURCE.replace(" ", "\u200e ").replace("20", "2\u20600")
    assert found(corpus, marked, GOOD, GOOD.replace("20", "2\u20600")) == set()
    url = "www.example.org"
    assert found(corpus, f"{SOURCE} {url}\u200e", f"{GOOD} {url}\u200e", f"{GOOD} {url}") == set()


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("a a", False),
        ("a a a", True),
        ("a b a b", False),
        ("a b a b a b", True),
        ("a b c d a b c d", True),
        ("a b c d a b c", False),
        ("x a blue shirt and a blue shirt and a", True),
        (". . . . ! !", False),
        ("", False),
        (" ".join([*map(str, range(21))] * 2), False),
        (" ".join([*map(str, range(20))] * 2), True),
    ],
)
def test_loops(text: str, loops: bool) -> None:
    assert has_loop(text.split()) == loops


@pytest.mark.parametrize(
    ("text", "balanced"),
    [("", True), ("([a]{b})", True), ("([)]", False), (")(", False), ("a (", False)],
)
def test_brackets(text: str, balanced: bool) -> None:
    assert is_balanced(text) == balanced


def test_wilsons_interval() -> None:
    # (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n), of 10 of 100, in lines
    z, n, p = 1.959964, 100, 0.1
    middle, half = p + z * z / 2 / n, z * (p * (1 - p) / n + z * z / 4 / n / n) ** 0.5
    expected = [(middle + sign * half) / (1 + z * z / n) * n for sign in (-1, 1)]
    assert wilson(10, 100) == pytest.approx(expected, abs=1e-4)
    assert wilson(0, 100)[0] == 0 and wilson(0, 0) == (0, 0)


def exact(more: int, fewer: int) -> float:
    """McNemar's exact test by its definition: twice the smaller tail of Bin(n, 1/2), at most 1."""
    n, least = more + fewer, min(more, fewer)
    return min(1.0, 2 * sum(comb(n, k) for k in range(least + 1)) / 2**n)


@pytest.mark.parametrize(("more", "fewer"), [(12, 2), (2, 12), (5, 5), (1, 0), (0, 30)])
def test_mcnemars_exact_test(more: int, fewer: int) -> None:
    both = {100, 101, 102}
    first, second = {*range(more, more + fewer)} | both, {*range(more)} | both
    assert paired_p([first], [second]) == pytest.approx(exact(more, fewer), abs=1e-6)


def test_a_line_counts_once_over_seeds() -> None:
    # line 1 is broken by two seeds of the second system, line 2 by one seed of each, line 3 by two
    # of the first and one of the second
    first, second = [[2, 3], [3]], [[1, 2, 3], [1, 4]]
    assert paired_p(first, second) == exact(2, 1)
    assert paired_p([[1]], [[1]]) == 1.0
