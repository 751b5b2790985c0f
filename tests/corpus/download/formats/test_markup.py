import io
import re
from collections import Counter
from html import escape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.dataset.fake_sgml import FakeSGMLDataset
from sacrebleu.dataset.wmt_xml import WMTXMLDataset
from test_formats import PAIRS, XML, fault, last_file, published, read

# What XML can say as it is.
CHARACTERS = st.characters(
    min_codepoint=0x20, exclude_categories=["Cs"], exclude_characters="\x7f\ufffe\uffff"
)
TEXTS = st.text(CHARACTERS | st.sampled_from("\n\t&<>]\"' "))


# --- entities


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;">',
        '<!ENTITY a SYSTEM "file:///etc/hostname">',
        '<!ENTITY % a SYSTEM "http://127.0.0.1:9/x.dtd"> %a;',
        '<!ENTITY a PUBLIC "x" "x.gif" NDATA gif>',
    ],
    ids=["billion laughs", "external", "parameter", "unparsed"],
)
@pytest.mark.parametrize("name", XML)
def test_files_that_declare_entities_are_refused(name, declaration):
    *first, last = published(name)
    head, _, body = last.partition(b"?>\n")
    body = re.sub(rb"<!DOCTYPE.*?>\n", b"", body).replace(b"stove", b"&c;")
    last = b"%b?>\n<!DOCTYPE x\n[\n%b\n]>\n%b" % (head, declaration.encode(), body)
    message = fault(name, *first, last)
    assert message.startswith(f"{last_file(name)}:4: declares the entity 'a'")


@pytest.mark.parametrize("name", XML)
def test_entities_that_only_a_dtd_could_declare_are_not_skipped(name):
    *first, last = published(name)
    body = re.sub(rb"<!DOCTYPE.*?>\n", b"", last.partition(b"?>\n")[2])
    body = body.replace(b"stove", b"&eacute;")
    declared = b'<?xml version="1.0"?>\n<!DOCTYPE x SYSTEM "x.dtd">\n' + body
    assert "&eacute; is unknown" in fault(name, *first, declared)
    assert "undefined entity" in fault(name, *first, b'<?xml version="1.0"?>\n\n' + body)


@pytest.mark.parametrize("character", ["&#0;", "&#xD800;", "&#xFFFE;", "&#8;"])
@pytest.mark.parametrize("name", XML)
def test_characters_that_xml_has_not_are_an_error(name, character):
    *first, last = published(name)
    last = last.replace(b"stove", character.encode())
    line = last[: last.index(character.encode())].count(b"\n") + 1
    assert fault(name, *first, last).startswith(f"{last_file(name)}:{line}: not sound XML: ")


@pytest.mark.parametrize("name", XML)
def test_line_breaks_written_as_characters_become_spaces(name):
    *first, last = published(name)
    last = last.replace(b" the stove", b"&#10; &#13;&#9; the\n stove")
    assert read(name, *first, last)[0].target == PAIRS[0].target


# --- mteval: sgml and ted-xml


def of_sacrebleu(folder: Path, content: bytes) -> list[str]:
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
        ('<seg id="1">a</doc>', ":2: <seg> without </seg>"),
        ("<seg>a</seg>", ":2: <seg> without id"),
        ('<seg id="1">a</seg></seg>', ":2: </seg> without <seg>"),
        ('<seg id="1">a</seg>\n<seg id="2">b', ":3: <seg> without </seg>"),
    ],
)
def test_sgml_whose_sentences_do_not_end_is_an_error(body, problem):
    file = f'<srcset><doc docid="a">\n{body}</srcset>'.encode()
    assert f"inputs/x.de{problem}" in fault("sgml", file, file)


@pytest.mark.parametrize("name", ["sgml", "ted-xml"])
@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        (b'id="2"> When', b'id="3"> When', ("seg '2' of doc 'a.1'", "seg '3' of doc 'a.1'")),
        (b'docid="b.2"', b'docid="b.3"', ("seg '3' of doc 'b.2'", "seg '3' of doc 'b.3'")),
        (b'</doc>\n<doc docid="b.2">', b"", ("seg '3' of doc 'b.2'", "seg '3' of doc 'a.1'")),
        (
            b'<seg id="1"> The',
            b'<seg id="01"> The',
            ("seg '1' of doc 'a.1'", "seg '01' of doc 'a.1'"),
        ),
    ],
)
def test_the_first_sentences_that_differ_in_document_or_id_are_named(name, old, new, places):
    source, target = published(name)
    assert old in target
    target = target.replace(old, new)
    first, _, second = (
        fault(name, source, target).removesuffix(": not parallel").partition(", but ")
    )
    sides = (first, "inputs/x.de", source), (second, "inputs/x.en", target)
    for (message, file, content), place in zip(sides, places, strict=True):
        seg = b"<seg id=" + place.split()[1].replace("'", '"').encode()
        number = next(n for n, line in enumerate(content.split(b"\n"), 1) if seg in line)
        assert message == f"{file}:{number}: {place}"


def test_ted_xml_reads_nothing_but_its_sentences():
    source, target = (
        f"""<?xml version="1.0" encoding="UTF-8"?>
        <mteval><{root} setid="tst2010" srclang="German">
        <doc docid="535" genre="lectures"><url>http://x</url><title>Titel</title>
        <description>Was er sagt</description><talkid>535</talkid>
        <seg id="1"> {text} &amp; 3 &lt; 4 </seg>
        <seg id="2"></seg>
        </doc><doc docid="531"><seg id="1">{text}<!-- a --> b<![CDATA[ <c>]]></seg></doc>
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


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1))
def test_ted_xml_gives_any_sentence_back_folded(pairs):
    files = [
        "<mteval><doc docid='a'>"
        + "".join(f"<seg id='{id}'>{escape(pair[side])}</seg>" for id, pair in enumerate(pairs))
        + "</doc></mteval>"
        for side in (0, 1)
    ]
    wanted = [tuple(" ".join(text.split()) for text in pair) for pair in pairs]
    assert read("ted-xml", *(file.encode() for file in files)) == wanted


# --- wmt-xml


WMT = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="newstest2021.de-en">
  <collection id="general">
    <doc origlang="de" id="a.1">
      <src lang="de"><p><seg id="1">Eins\u00a0 &amp; &lt;zwei&gt;</seg>
        <seg id="2"> drei
          vier </seg></p><p><seg id="10">f\u00fcnf</seg></p></src>
      <ref lang="en" translator="B"><p><seg id="1">one &amp; &lt;two&gt;</seg></p>
        <p><seg id="10">five</seg><seg id="2">three four</seg></p></ref>
      <ref lang="en" translator="A"><p><seg id="1">A1</seg><seg id="2">A2</seg><seg id="10">A</seg>
        </p></ref>
      <hyp system="x" language="en"><p><seg id="1">h1</seg><seg id="2">h2</seg><seg id="10">h</seg>
        </p></hyp>
    </doc>
    <doc origlang="de" id="suite" testsuite="probe">
      <src lang="de"><p><seg id="1">Probe</seg><seg id="2">Probe</seg></p></src>
    </doc>
    <doc origlang="en" id="a.2">
      <src lang="de"><p><seg id="1">Ende</seg></p></src>
      <ref lang="en" translator="B"><p><seg id="1">end</seg></p></ref>
      <ref lang="en" translator="A"><p><seg id="1">A3</seg></p></ref>
      <hyp system="x" language="en"><p><seg id="1">h3</seg></p></hyp>
    </doc>
  </collection>
</dataset>
"""


def test_wmt_xml_is_read_as_by_sacrebleu():
    file = WMT.encode()
    fields = WMTXMLDataset._unwrap_wmt21_or_later(io.BytesIO(file))
    dropped = Counter()
    found = read("wmt-xml", file, dropped=dropped)
    wanted = zip(fields["src"], fields["ref:B"], strict=True)
    assert found == [tuple(map(WMTXMLDataset._clean, pair)) for pair in wanted]
    assert len(found) == 4
    assert found[1:3] == [("drei vier", "three four"), ("fünf", "five")]
    assert dropped == {"testsuite": 2}


def test_wmt_xml_takes_the_first_reference_in_the_language():
    file = WMT.replace('<ref lang="en" translator="B">', '<ref lang="cs" translator="B">', 1)
    file = file.replace('src lang="de"', 'src lang="DE-de"')
    assert [pair.target for pair in read("wmt-xml", file.encode())] == ["A1", "A2", "A", "end"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('<seg id="10">five</seg>', "", ":4: doc 'a.1': seg '10' is only in src"),
        ('<seg id="10">fünf</seg>', "", ":4: doc 'a.1': seg '10' is only in ref"),
        ('<seg id="2"> drei', '<seg id="3"> drei', ":4: doc 'a.1': seg '3' is only in src"),
        ('<seg id="2"> drei', '<seg id="1"> drei', ":6: doc 'a.1': <seg> with id '1'"),
        ('<seg id="2"> drei', "<seg> drei", ":6: doc 'a.1': <seg> with id ''"),
        ('<src lang="de">', '<src lang="cs">', ":4: doc 'a.1': no src in de"),
        ('lang="en"', 'lang="cs"', ":4: doc 'a.1': no ref in en"),
    ],
)
def test_wmt_xml_without_its_counterparts_is_an_error(old, new, problem):
    assert old in WMT
    message = fault("wmt-xml", WMT.replace(old, new).encode())
    assert message.startswith(f"inputs/both{problem}")


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1))
def test_wmt_xml_gives_any_sentence_back_folded(pairs):
    wanted = [tuple(" ".join(text.split()) for text in pair) for pair in pairs]
    assert read("wmt-xml", *published("wmt-xml", pairs)) == wanted
