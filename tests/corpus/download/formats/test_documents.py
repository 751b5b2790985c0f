"""The format documents: sentences are aligned within documents, which empty lines separate."""

import pytest

from bleuprint.corpus.steps.filter_stats import SetCounts
from corpora import TORTURE, lines_to_text, sources_of, targets_of
from parallel_formats import PAIRS, read_error, read_pairs

SOURCES = sources_of(PAIRS)
TARGETS = targets_of(PAIRS)


def document_files(*documents):
    """Return two files with an empty line after each document.

    Args:
        documents: The source lines and the target lines of each document.
    """
    files = [b"", b""]
    for sides in documents:
        for index, lines in enumerate(sides):
            files[index] += lines_to_text(lines).encode() + b"\n"
    return files


LONG_SENTENCE = "Dieser Satz hat keine Entsprechung und ist so lang, dass er auffällt."
JOINED_TARGET = "The cat lies by the stove. When does the next train leave?"


def files_with_joined_and_lost_sentences():
    """Return files of four documents.

    In the first one, a target translates two sources; the next two have one side; the last one is
    empty.
    """
    return document_files(
        (SOURCES, [JOINED_TARGET, *TARGETS[2:]]),
        ([LONG_SENTENCE], []),
        ([], ["alone"]),
        ([], []),
    )


def test_two_sentences_that_one_sentence_translates_are_joined():
    """Sentences are aligned within documents; an empty line ends a document.

    In the first of the four documents, the first target sentence translates the first two source
    sentences. The second document has no target, the third no source, and the fourth is empty.
    """
    pairs = read_pairs("documents", *files_with_joined_and_lost_sentences())

    assert pairs == [(f"{SOURCES[0]} {SOURCES[1]}", JOINED_TARGET), *PAIRS[2:]]


def test_the_counts_contain_joined_and_dropped_sentences():
    """Sentences are aligned within documents; an empty line ends a document.

    In the first of the four documents, the first target sentence translates the first two source
    sentences. The second document has no target, the third no source, and the fourth is empty.
    """
    counts = SetCounts()

    read_pairs("documents", *files_with_joined_and_lost_sentences(), counts=counts)

    assert counts.changed == {"2-1": 1}  # Two source sentences with one target sentence.
    assert counts.dropped == {"1-0": 1, "0-1": 1}  # A source without target, and the reverse.
    # The reader counts only what it drops; its caller counts the pairs that it returns.
    assert counts.pairs_in == 2
    assert counts.pairs_out == 0


def test_the_counts_contain_samples_of_joined_and_dropped_sentences():
    """The report shows such samples, so that a user can judge the alignment.

    In the first of the four documents, the first target sentence translates the first two source
    sentences (2-1). The second document is a source sentence without target (1-0).
    """
    counts = SetCounts()

    read_pairs("documents", *files_with_joined_and_lost_sentences(), counts=counts)

    # The lost sentence is pair 4, after the three pairs of the first document.
    assert counts.samples["1-0"] == [{"pair": 4, "source": LONG_SENTENCE, "target": ""}]
    assert len(counts.samples["2-1"]) == 1
    joined_sample = counts.samples["2-1"][0]
    assert joined_sample["source"] == f"{SOURCES[0]} | {SOURCES[1]}"
    assert joined_sample["new_source"] == f"{SOURCES[0]} {SOURCES[1]}"


@pytest.mark.parametrize("blank_line", ["", " ", "\t", "\u3000 ", "\xa0", "\r", "\x0c"], ids=ascii)
def test_a_line_of_white_space_ends_a_document(blank_line):
    files = document_files((SOURCES, TARGETS), (SOURCES[:2], TARGETS[:2]))
    files = [content.replace(b"\n\n", f"\n{blank_line}\n".encode()) for content in files]

    assert read_pairs("documents", *files) == [*PAIRS, *PAIRS[:2]]


@pytest.mark.parametrize("character", TORTURE, ids=ascii)
def test_a_control_character_in_a_line_does_not_end_a_document(character):
    """Only an empty line ends a document, not a character at which other programs end lines.

    The second document has the sentences SOURCES and TARGETS, which are the four pairs PAIRS.
    """
    lines = ["eins", f"zwei{character}drei vier", f"{character}und", "fünf sechs"]
    files = document_files((lines, lines), (SOURCES, TARGETS))

    pairs = read_pairs("documents", *files)

    assert pairs[0] == ("eins", "eins")
    assert pairs[1] == (lines[1], lines[1])
    assert pairs[-4:] == PAIRS


# A carriage return is removed at the end of a line, and a byte order mark at the start of a file.
@pytest.mark.parametrize(
    "character", [char for char in TORTURE if char not in ("\r", "\ufeff")], ids=ascii
)
def test_a_control_character_in_a_line_is_kept(character):
    """Except carriage returns and byte order marks, which are removed, all characters are text.

    The second document has the sentences SOURCES and their translations TARGETS.
    """
    lines = ["eins", f"zwei{character}drei vier", f"{character}und", "fünf sechs"]

    files = document_files((lines, lines), (SOURCES, TARGETS))

    pairs = read_pairs("documents", *files)

    # The alignment may join sentences by spaces, so that only the joined text is compared.
    assert " ".join(sources_of(pairs)) == " ".join(lines + SOURCES)


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_the_last_document_ends_at_the_end_of_the_file(end):
    """The empty line after the last document is optional."""
    content = b"eins zwei\n\ndrei vier"

    pairs = read_pairs("documents", content + end, content + b"\n")

    assert pairs == [("eins zwei", "eins zwei"), ("drei vier", "drei vier")]


@pytest.mark.parametrize(
    ("source", "target", "source_documents", "target_documents"),
    [
        pytest.param(b"a\n\nb\n", b"a\nb\n", "2 documents", 1, id="one document more"),
        pytest.param(b"a\n", b"a\n\n\n", "1 document", 2, id="empty second document"),
        pytest.param(b"", b"a\n", "0 documents", 1, id="empty file"),
    ],
)
def test_different_numbers_of_documents_are_an_error(
    source, target, source_documents, target_documents
):
    """An empty line ends a document; the nth documents of both files translate each other."""
    message = read_error("documents", source, target)

    assert message.startswith(
        f"inputs/x.de has {source_documents}, but inputs/x.en has "
        f"{target_documents}, so they are not parallel"
    )


def test_documents_that_all_have_an_empty_side_are_an_error():
    message = read_error("documents", b"a\nb\n\n\n", b"\na\n\n")

    assert "dropped: 1 by 0-1, 2 by 1-0" in message
