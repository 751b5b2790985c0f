"""Test sets with markup for the scoring program mteval: the formats sgml and ted-xml."""

from html import escape
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.dataset.fake_sgml import FakeSGMLDataset

from corpora import sources_of, targets_of
from parallel_formats import XML_TEXTS, published_files, read_error, read_pairs


def sgml_file(root_element, sentences):
    """Return an SGML file of one document, in the form of WMT."""
    segments = []
    for number, sentence in enumerate(sentences, 1):
        segments.append(f'<seg id="{number}">{sentence}</seg>\n')
    return (
        f'<{root_element} setid="newstest" srclang="any">\n<doc sysid="ref" docid="x.1">\n<p>\n'
        f"{''.join(segments)}</p>\n</doc>\n</{root_element}>\n"
    ).encode()


def sentences_of_sacrebleu(folder, content):
    """Return the sentences of an SGML file as sacreBLEU's own reader writes them."""
    sgml_path = folder / "file.sgm"
    sgml_path.write_bytes(content)
    text_path = folder / "file.txt"
    FakeSGMLDataset("x", ["x"], "", "")._convert_format(str(sgml_path), str(text_path))
    return text_path.read_bytes().decode().split("\n")[:-1]


def test_sgml_is_read_as_by_sacrebleu(tmp_path):
    """Entities stay as they are, spaces are folded, and tags in a sentence are kept."""
    sources = [
        "Bell & Co. sagt &quot;3 &lt; 4&quot; &amp; so",
        "  zwei\u00a0 Wörter\t\u3000in  <b>Eile</b> ",
        "a < b > c <segment> <docs> </p>",
        "",
        "\x85 \x1c U+2028:\u2028 U+200B:\u200b",
    ]
    targets = [f"{source} (en)" for source in sources]
    source_file = sgml_file("srcset", sources)
    target_file = sgml_file("refset", targets)

    pairs = read_pairs("sgml", source_file, target_file)

    expected_sources = sentences_of_sacrebleu(tmp_path, source_file)
    expected_targets = sentences_of_sacrebleu(tmp_path, target_file)
    assert pairs == list(zip(expected_sources, expected_targets, strict=True))
    assert expected_sources[0] == sources[0]
    assert expected_sources[1] == "zwei Wörter in <b>Eile</b>"


def test_sgml_tags_may_be_in_capitals_and_extend_over_several_lines():
    """SGML, unlike XML, ignores the case of tags and needs no quotation marks around values."""
    source_file = (
        b"<SRCSET srclang=de><DOC\n docid='a'>ignored<SEG ID = 1 >eins\n zwei<\ndrei </SEG> <seg\n"
        b'id="2"\n>vier</seg\n></DOC></SRCSET>'
    )
    target_file = (
        b'<refset><doc docid="a"><seg id="1">one</seg><seg id="2">two</seg></doc></refset>'
    )

    pairs = read_pairs("sgml", source_file, target_file)

    assert pairs == [("eins zwei< drei", "one"), ("vier", "two")]


@pytest.mark.parametrize("root_element", ["srcset", "refset", "tstset", "mteval"])
def test_an_sgml_file_must_end_with_its_root_element(root_element):
    """A file without its end was probably cut short."""
    without_end = f'<{root_element}><doc docid="a"><seg id="1">a</seg></doc>'.encode()
    complete = without_end + f"</{root_element}>\n".encode()

    pairs = read_pairs("sgml", complete, complete)
    message = read_error("sgml", complete, without_end)

    assert pairs == [("a", "a")]
    assert "inputs/x.en: the end tag" in message


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(
            '<seg id="1">a\n<seg id="2">b</seg>',
            ":2: a <seg> has no end tag </seg>",
            id="next sentence begins",
        ),
        pytest.param("<seg>a</seg>", ":2: a <seg> has no id", id="no id"),
        pytest.param(
            '<seg id="1">a</seg>\n<seg id="2">b',
            ":3: a <seg> has no end tag </seg>",
            id="last sentence does not end",
        ),
    ],
)
def test_a_damaged_segment_of_sgml_is_named_with_its_line(body, problem):
    content = f'<srcset><doc docid="a">\n{body}</srcset>'.encode()

    assert f"inputs/x.de{problem}" in read_error("sgml", content, content)


def line_of_segment(content, number):
    """Return the number of the line that contains a segment, counted from 1."""
    before = content[: content.index(f'<seg id="{number}"'.encode())]
    return before.count(b"\n") + 1


# The published files have the segments 1 and 2 in document a.1, and 3 and 4 in document b.2.
@pytest.mark.parametrize("text_format", ["sgml", "ted-xml"])
@pytest.mark.parametrize(
    ("old", "new", "source_id", "source_document", "target_id", "target_document"),
    [
        pytest.param(
            b'id="2"> When', b'id="3"> When', 2, "a.1", 3, "a.1", id="segment with another id"
        ),
        pytest.param(
            b'docid="b.2"', b'docid="b.3"', 3, "b.2", 3, "b.3", id="document with another id"
        ),
        pytest.param(
            b'</doc>\n<doc docid="b.2">', b"", 3, "b.2", 3, "a.1", id="one document instead of two"
        ),
    ],
)
def test_the_first_segments_that_differ_in_document_or_id_are_named(
    text_format, old, new, source_id, source_document, target_id, target_document
):
    """Segments 1 and 2 of the files are in document a.1, segments 3 and 4 in document b.2.

    A replacement in the target file makes its documents or ids differ from those of the source.
    """
    source_file, target_file = published_files(text_format)
    changed_file = target_file.replace(old, new)
    assert changed_file != target_file  # `old` is in the file.

    message = read_error(text_format, source_file, changed_file)

    source_line = line_of_segment(source_file, source_id)
    target_line = line_of_segment(changed_file, target_id)
    assert message == (
        f"inputs/x.de:{source_line}: seg '{source_id}' of doc '{source_document}', "
        f"but inputs/x.en:{target_line}: seg '{target_id}' of doc '{target_document}', "
        "so the files are not parallel"
    )


def ted_file(root_element, word):
    """Return a file of two talks, whose metadata are no sentences."""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
        <mteval><{root_element} setid="tst2010" srclang="German">
        <doc docid="535" genre="lectures"><url>http://x</url><title>Titel</title>
        <description>Was er sagt</description><talkid>535</talkid>
        <seg id="1"> {word} &amp; 3 &lt; 4 </seg>
        <seg id="2"></seg>
        </doc><doc docid="531"><seg id="1">{word} b &#x3c;c></seg></doc>
        </{root_element}></mteval>""".encode()


def sentences_of_xml(content):
    """Return the text of each segment of an XML file, with folded spaces."""
    sentences = []
    for segment in ElementTree.fromstring(content).iter("seg"):
        text = "".join(segment.itertext())
        sentences.append(" ".join(text.split()))
    return sentences


def test_only_the_segments_of_ted_xml_are_sentences():
    """The files also contain the URL, title and description of a talk, which are not sentences.

    `sentences_of_xml` reads the segments by the XML parser of the standard library.
    """
    source_file = ted_file("srcset", "eins")
    target_file = ted_file("refset", "one")

    pairs = read_pairs("ted-xml", source_file, target_file)

    sources = sentences_of_xml(source_file)
    targets = sentences_of_xml(target_file)
    assert pairs == list(zip(sources, targets, strict=True))
    assert pairs == [
        ("eins & 3 < 4", "one & 3 < 4"),
        ("", ""),
        ("eins b <c>", "one b <c>"),
    ]


def mteval_file(sentences):
    """Return an XML file of one document with these sentences."""
    segments = []
    for number, sentence in enumerate(sentences):
        segments.append(f"<seg id='{number}'>{escape(sentence)}</seg>")
    return f"<mteval><doc docid='a'>{''.join(segments)}</doc></mteval>".encode()


@given(st.lists(st.tuples(XML_TEXTS, XML_TEXTS), min_size=1))
def test_any_sentence_of_ted_xml_is_read_back_with_folded_spaces(pairs):
    """Like the scoring program mteval, the reader replaces each run of white space by a space."""
    source_file = mteval_file(sources_of(pairs))
    target_file = mteval_file(targets_of(pairs))

    pairs_read = read_pairs("ted-xml", source_file, target_file)

    expected = [(" ".join(source.split()), " ".join(target.split())) for source, target in pairs]
    assert pairs_read == expected
