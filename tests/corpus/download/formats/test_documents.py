"""The format documents: what ends a document, joined and dropped sentences, and their counts."""

import pytest
from test_formats import PAIRS, fault, read

from bleuprint.corpus.steps.filter_stats import SetCounts
from corpora import TORTURE


def sides(*documents):
    """Two files with an empty line after each document."""
    return [
        "".join("".join(f"{line}\n" for line in text[side]) + "\n" for text in documents).encode()
        for side in (0, 1)
    ]


def columns(pairs):
    return [[pair[side] for pair in pairs] for side in (0, 1)]


def test_pairs_stay_within_documents_and_counts_add_up():
    source, target = columns(PAIRS)
    long = "Dieser Satz hat keine Entsprechung und ist so lang, dass er auffällt."
    joined = "The cat lies by the stove. When does the next train leave?"
    documents = (source, [joined, *target[2:]]), ([long], []), ([], ["alone"]), ([], [])
    counts = SetCounts()
    found = read("documents", *sides(*documents), counts=counts)
    assert found == [(f"{source[0]} {source[1]}", joined), *PAIRS[2:]]
    assert counts.changed == {"2-1": 1}
    assert counts.dropped == {"1-0": 1, "0-1": 1}
    assert counts.pairs_in == 2 and counts.pairs_out == 0  # those returned are the caller's
    assert counts.samples["1-0"] == [{"pair": 4, "source": long, "target": ""}]
    (sample,) = counts.samples["2-1"]
    assert sample["source"] == f"{source[0]} | {source[1]}"
    assert sample["new_source"] == f"{source[0]} {source[1]}"


@pytest.mark.parametrize("line", [" ", "\t", "\u3000 ", "\xa0", "\r", "\x0c"], ids=ascii)
def test_a_line_of_white_space_ends_a_document(line):
    files = sides(columns(PAIRS), columns(PAIRS[:2]))
    blank = [file.replace(b"\n\n", f"\n{line}\n".encode()) for file in files]
    assert read("documents", *blank) == read("documents", *files) == [*PAIRS, *PAIRS[:2]]


@pytest.mark.parametrize("character", TORTURE, ids=ascii)
def test_a_character_in_a_line_ends_no_document(character):
    text = [["eins", f"zwei{character}drei vier", f"{character}und", "fünf sechs"]] * 2
    found = read("documents", *sides(text, columns(PAIRS)))
    lost = ("\r", "\ufeff")  # at the end of a line and at the start of a file only
    assert found[:2] == [("eins", "eins"), (f"zwei{character}drei vier",) * 2]
    assert (
        " ".join(pair.source for pair in found)
        == " ".join([*text[0], *(pair.source for pair in PAIRS)])
        or character in lost
    )
    assert found[-4:] == PAIRS


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_the_last_document_ends_at_the_end_of_the_file(end):
    file = b"eins zwei\n\ndrei vier"
    counts = SetCounts()
    assert read("documents", file + end, file + b"\n", counts=counts) == [
        ("eins zwei", "eins zwei"),
        ("drei vier", "drei vier"),
    ]


@pytest.mark.parametrize(
    ("source", "target", "documents", "others"),
    [
        (b"a\n\nb\n", b"a\nb\n", "2 documents", 1),
        (b"a\n", b"a\n\n\n", "1 document", 2),
        (b"", b"a\n", "0 documents", 1),
    ],
)
def test_different_numbers_of_documents_are_an_error(source, target, documents, others):
    message = fault("documents", source, target)
    assert message.startswith(
        f"inputs/x.de has {documents} and inputs/x.en has {others}: not parallel"
    )


def test_documents_without_a_pair_are_an_error():
    assert "dropped: 1 by 0-1, 2 by 1-0" in fault("documents", b"a\nb\n\n\n", b"\na\n\n")
