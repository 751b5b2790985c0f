"""The test sets for mteval: sgml and ted-xml."""

from html import escape
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.dataset.fake_sgml import FakeSGMLDataset
from test_formats import XML_TEXTS, fault, published, read


def of_sacrebleu(folder, content):
    """The sentences of a file as sacreBLEU's own reader has them."""
    raw, text = folder / "raw", folder / "text"
    raw.write_bytes(content)
    FakeSGMLDataset("x", ["x"], "", "")._convert_format(str(raw), str(text))
    return text.read_bytes().decode().split("\n")[:-1]


def test_sgml_is_read_as_by_sacrebleu(tmp_path):
    source = [
        "Bell & Co. sagt &quot;3 &lt; 4&quot; &amp; so",
        "  zwei\u00a0 Wörter\t\u3000in  <b>Eile</b> ",
        "a < b > c <segment> <docs> </p>",
        "",
        "\x85 \x1c U+2028:\u2028 U+200B:\u200b",
    ]
    target = [f"{text} (en)" for text in source]
    sides = [
        f'<{root} setid="newstest" srclang="any">\n<doc sysid="ref" docid="x.1">\n<p>\n'
        + "".join(f'<seg id="{id}">{text}</seg>\n' for id, text in enumerate(side, 1))
        + f"</p>\n</doc>\n</{root}>\n"
        for root, side in (("srcset", source), ("refset", target))
    ]
    files = [side.encode() for side in sides]
    wanted = list(zip(*(of_sacrebleu(tmp_path, file) for file in files), strict=True))
    assert read("sgml", *files) == wanted
    assert wanted[0][0] == source[0]
    assert wanted[1][0] == "zwei Wörter in <b>Eile</b>"


def test_sgml_tags_may_be_in_capitals_and_tags_and_sentences_over_several_lines():
    source = (
        b"<SRCSET srclang=de><DOC\n docid='a'>ignored<SEG ID = 1 >eins\n zwei<\ndrei </SEG> <seg\n"
        b'id="2"\n>vier</seg\n></DOC></SRCSET>'
    )
    target = b'<refset><doc docid="a"><seg id="1">one</seg><seg id="2">two</seg></doc></refset>'
    assert read("sgml", source, target) == [("eins zwei< drei", "one"), ("vier", "two")]


@pytest.mark.parametrize("end", ["srcset", "refset", "tstset", "mteval"])
def test_sgml_ends_with_its_root(end):
    body = f'<{end}><doc docid="a"><seg id="1">a</seg></doc>'.encode()
    whole = body + f"</{end}>\n".encode()
    assert read("sgml", whole, whole) == [("a", "a")]
    assert "inputs/x.en: does not end" in fault("sgml", whole, body)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<seg id="1">a\n<seg id="2">b</seg>', ":2: <seg> without </seg>"),
        ("<seg>a</seg>", ":2: <seg> without id"),
        ('<seg id="1">a</seg>\n<seg id="2">b', ":3: <seg> without </seg>"),
    ],
)
def test_sgml_whose_sentences_do_not_end_is_an_error(body, problem):
    file = f'<srcset><doc docid="a">\n{body}</srcset>'.encode()
    assert f"inputs/x.de{problem}" in fault("sgml", file, file)


@pytest.mark.parametrize("name", ["sgml", "ted-xml"])
@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (b'id="2"> When', b'id="3"> When', "seg '3' of doc 'a.1'"),
        (b'docid="b.2"', b'docid="b.3"', "seg '3' of doc 'b.3'"),
        (b'</doc>\n<doc docid="b.2">', b"", "seg '3' of doc 'a.1'"),
    ],
)
def test_the_first_sentences_that_differ_in_document_or_id_are_named(name, old, new, place):
    source, target = published(name)
    changed = target.replace(old, new)
    assert changed != target
    at = "seg '2' of doc 'a.1'" if old.startswith(b"id") else "seg '3' of doc 'b.2'"
    lines = [
        next(n for n, line in enumerate(side.split(b"\n"), 1) if f'id="{said[5]}"'.encode() in line)
        for side, said in ((source, at), (changed, place))
    ]
    assert fault(name, source, changed) == (
        f"inputs/x.de:{lines[0]}: {at}, but inputs/x.en:{lines[1]}: {place}: not parallel"
    )


def test_ted_xml_reads_nothing_but_its_sentences():
    source, target = (
        f"""<?xml version="1.0" encoding="UTF-8"?>
        <mteval><{root} setid="tst2010" srclang="German">
        <doc docid="535" genre="lectures"><url>http://x</url><title>Titel</title>
        <description>Was er sagt</description><talkid>535</talkid>
        <seg id="1"> {text} &amp; 3 &lt; 4 </seg>
        <seg id="2"></seg>
        </doc><doc docid="531"><seg id="1">{text} b &#x3c;c></seg></doc>
        </{root}></mteval>""".encode()
        for root, text in (("srcset", "eins"), ("refset", "one"))
    )
    wanted = [
        (" ".join(a.split()), " ".join(b.split()))
        for a, b in zip(
            *(
                ["".join(seg.itertext()) for seg in ElementTree.fromstring(file).iter("seg")]
                for file in (source, target)
            ),
            strict=True,
        )
    ]
    assert wanted[0] == ("eins & 3 < 4", "one & 3 < 4")
    assert read("ted-xml", source, target) == wanted


@given(st.lists(st.tuples(XML_TEXTS, XML_TEXTS), min_size=1))
def test_ted_xml_gives_any_sentence_back_folded(pairs):
    files = [
        "<mteval><doc docid='a'>"
        + "".join(f"<seg id='{id}'>{escape(pair[side])}</seg>" for id, pair in enumerate(pairs))
        + "</doc></mteval>"
        for side in (0, 1)
    ]
    wanted = [tuple(" ".join(text.split()) for text in pair) for pair in pairs]
    assert read("ted-xml", *(file.encode() for file in files)) == wanted
