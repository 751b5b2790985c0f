"""XCES: sentences of documents in zip archives, linked by an alignment."""

import io
import tracemalloc
from html import escape

import pytest

from archives import zipped
from bleuprint.config.corpus_files import File, Text
from bleuprint.corpus.download.formats import read_text
from bleuprint.corpus.steps.ledger import SetCounts
from bleuprint.runtime.errors import UserError
from corpora import LINE_ENDS_ELSEWHERE

GERMAN = {"1": "Eins.", "2": "Zwei\n  <time id='T1'/> und\u00a0 halb. ", "3": "Drei.", "s4": "Äh"}
ENGLISH = {"1": "One.", "2": "Two &amp; a half.", "3.1": "Three,", "3.2": "that is.", "5": "Five"}
LINKS = ["1;1", "2;2", "3;3.1 3.2", "s4;", ";5", "2 1;2"]
PAIRS = [
    ("Eins.", "One."),
    ("Zwei und\u00a0 halb.", "Two & a half."),
    ("Drei.", "Three, that is."),
    ("Zwei und\u00a0 halb. Eins.", "Two & a half."),
]


def document(sentences):
    body = "".join(f'<p><s id="{id}">{text}</s></p>\n' for id, text in sentences.items())
    return f'<?xml version="1.0" encoding="utf-8"?>\n<text><head/>{body}</text>'.encode()


def archive(**documents):
    return zipped([(f"Books/raw/{n.replace('_', '/')}.xml", d) for n, d in documents.items()])


def group(links, source="de/a.xml.gz", target="en/a.xml.gz"):
    links = "".join(f'<link id="SL{i}" xtargets="{link}" />\n' for i, link in enumerate(links))
    return f'<linkGrp targType="s" fromDoc="{source}" toDoc="{target}">\n{links}</linkGrp>\n'


def alignment(*groups):
    head = '<?xml version="1.0"?>\n<!DOCTYPE cesAlign PUBLIC "-//CES//DTD XML cesAlign//EN" "">\n'
    return f'{head}<cesAlign version="1.0">\n{"".join(groups)}</cesAlign>\n'.encode()


SOURCE, TARGET = archive(de_a=document(GERMAN)), archive(en_a=document(ENGLISH))


def read(links, source=SOURCE, target=TARGET):
    files = [File(path=f"inputs/{name}") for name in ("de.zip", "en.zip", "de-en.xml")]
    text = Text("x", "xces", source=files[0], target=files[1], alignment=files[2])
    streams, counts = [io.BytesIO(data) for data in (source, target, links)], SetCounts()
    return list(read_text(text, streams, ("de", "en"), counts, [])), counts.dropped


def fault(*contents):
    with pytest.raises(UserError) as error:
        read(*contents)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_linked_sentences_are_pairs_and_others_are_counted():
    assert read(alignment(group(LINKS))) == (PAIRS, {"one_sided": 2})


def test_either_language_may_be_the_from_document():
    assert read(alignment(group(LINKS)), TARGET, SOURCE)[0] == [pair[::-1] for pair in PAIRS]


def test_documents_are_found_with_and_without_the_name_of_the_corpus_in_any_order():
    source = zipped([("b/c/d.xml", document({"1": "b"})), ("X/raw/b/a.xml", document({"1": "a"}))])
    target = zipped([("X/raw/e/d.xml", document({"1": "B"})), ("e/a.xml", document({"1": "A"}))])
    groups = group(["1;1"], "b/c/d.xml", "e/d.xml.gz"), group(["1;1"], "b/a.xml.gz", "e/a.xml")
    assert read(alignment(*groups), source, target)[0] == [("b", "B"), ("a", "A")]


@pytest.mark.parametrize("character", ["\0", "\ufeff", *LINE_ENDS_ELSEWHERE], ids=ascii)
def test_characters_neither_break_lines_nor_get_lost(character):
    text = f"eins{character}zwei"
    source = archive(de_a=document(GERMAN | {"1": escape(text)}))
    if character < " " and character != "\r":
        assert "de.zip!Books/raw/de/a.xml: not sound XML: " in fault(
            alignment(group(LINKS)), source
        )
    else:
        assert read(alignment(group(["1;1", "2;2"])), source)[0] == [
            (text.replace("\r", " "), "One."),
            PAIRS[1],
        ]


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (
            "7;1",
            "inputs/de-en.xml: link 'SL0': inputs/de.zip!Books/raw/de/a.xml has no sentence '7'",
        ),
        (
            "1;1 x",
            "inputs/de-en.xml: link 'SL0': inputs/en.zip!Books/raw/en/a.xml has no sentence 'x'",
        ),
        ("1", "inputs/de-en.xml: link 'SL0': xtargets '1': expected"),
        ("1;1;1", "inputs/de-en.xml: link 'SL0': xtargets '1;1;1': expected"),
    ],
)
def test_links_to_nothing_are_an_error(links, message):
    assert fault(alignment(group([links]))).startswith(message)


def test_documents_that_are_not_there_are_named():
    message = "inputs/de-en.xml: linkGrp of 'de/x.xml.gz' and 'en/a.xml.gz': no document "
    links = alignment(group(["1;1"], "de/x.xml.gz"))
    assert fault(links) == f"{message}de/x.xml.gz in inputs/de.zip and inputs/en.zip"
    both = archive(de_a=document(GERMAN), en_a=document(ENGLISH))
    assert "both archives have both documents" in fault(alignment(group(LINKS)), both, both)
    assert "no document de/a.xml.gz and de/a.xml.gz in" in fault(
        alignment(group(LINKS, target="de/a.xml.gz"))
    )


def test_links_outside_documents_and_alignments_without_links_are_an_error():
    assert "link 'L': not in a linkGrp" in fault(
        b"<cesAlign><link id='L' xtargets='1;1'/></cesAlign>"
    )
    message = fault(alignment(group(["1;", ";1"])))
    assert message.endswith("no pairs of de and en (dropped: 2 by one_sided)")


def test_damage_is_named():
    links = alignment(group(LINKS))
    assert fault(links[:-20]).startswith("inputs/de-en.xml: not sound XML: ")
    assert fault(b"").startswith("inputs/de-en.xml: not sound XML: ")
    assert fault(links, SOURCE[:-30]).startswith("inputs/de.zip: truncated or damaged")
    start = SOURCE.index(b"a.xml") + 8
    changed = SOURCE[:start] + bytes([SOURCE[start] ^ 255]) + SOURCE[start + 1 :]
    assert fault(links, changed).startswith(
        "inputs/de.zip!Books/raw/de/a.xml: truncated or damaged"
    )
    unsound = archive(de_a=document(GERMAN | {"1": "<no description>"}))
    assert fault(links, unsound).startswith("inputs/de.zip!Books/raw/de/a.xml: not sound XML: ")


def test_a_large_document_is_refused_before_it_is_unpacked():
    large = archive(de_a="<d>" + " " * (70 << 20) + "</d>")
    assert len(large) < 100_000
    message = "inputs/de.zip!Books/raw/de/a.xml: a document of 73,400,327 bytes"
    assert fault(alignment(group(LINKS)), large) == message


def test_memory_does_not_grow_with_the_number_of_documents():
    peaks = []
    for count in (5, 40):
        texts = document({str(i): f"sentence {i} " * 20 for i in range(200)})
        sides = [archive(**{f"{side}_{i}": texts for i in range(count)}) for side in ("de", "en")]
        links = [f"{i};{i}" for i in range(200)]
        groups = [group(links, f"de/{i}.xml.gz", f"en/{i}.xml.gz") for i in range(count)]
        files, counts = [File(path=f"inputs/{n}") for n in "abc"], SetCounts()
        text = Text("x", "xces", source=files[0], target=files[1], alignment=files[2])
        streams = [io.BytesIO(data) for data in (*sides, alignment(*groups))]
        tracemalloc.start()
        assert sum(1 for _ in read_text(text, streams, ("de", "en"), counts, [])) == 200 * count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 300_000  # bytes, of 7 MB that the documents grow by
