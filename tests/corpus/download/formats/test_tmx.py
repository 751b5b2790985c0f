"""TMX: units with both languages, without codes."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_formats import PAIRS, XML_TEXTS, fault, published, read

from bleuprint.corpus.steps.filter_stats import SetCounts

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
<header creationtool="x" srclang="en"><note>seg</note><prop type="seg">seg</prop></header>
<body>
<tu tuid="1"><note>no text</note>
  <tuv xml:lang="EN-us"><prop type="x">no text</prop><seg>In <bpt i="1">&lt;b></bpt>bold<ept i="1">
  &lt;/b></ept>, <hi type="x">high <ph x="2">&lt;img alt="<sub>not this</sub>"> nor this</ph>and
  </hi>    low<it pos="end">{</it><ut>x</ut>.</seg></tuv>
  <tuv xml:lang="fr"><seg>En <ph>x</ph>gras</seg></tuv>
  <tuv xml:lang="de"><seg>In
      fett,\t hoch\u00a0 und tief. </seg></tuv>
  <tuv xml:lang="de-AT"><seg>das zweite</seg></tuv>
</tu>
<tu><tuv xml:lang="de"><seg>nur deutsch</seg></tuv><tuv xml:lang="fr"><seg>x</seg></tuv></tu>
<tu><tuv lang="DE_de"><seg></seg></tuv><tuv lang="en"><seg>empty &amp; &#x263A;</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>only English</seg></tuv><tuv xml:lang="de-DE"></tuv></tu>
<tu></tu>
</body>
</tmx>
"""


def units_of(content):
    """German and English of each unit, slowly, from a tree of the whole file."""
    units = []
    for unit in ElementTree.fromstring(content).iter("tu"):
        texts: dict[str, str] = {}
        for variant in unit.findall("tuv"):
            code = variant.get("{http://www.w3.org/XML/1998/namespace}lang") or variant.get("lang")
            seg = variant.find("seg")
            if seg is not None:
                texts.setdefault(code[:2].lower(), re.sub("[ \t\n]+", " ", flat(seg)).strip(" "))
        units.append((texts.get("de"), texts.get("en")))
    return units


def flat(element):
    inside = "" if element.tag in ("bpt", "ept", "ph", "it", "ut") else element.text or ""
    if element.tag in ("seg", "hi"):
        inside += "".join(flat(child) + (child.tail or "") for child in element)
    return inside


def test_units_of_tmx_are_read_with_text_and_without_codes():
    counts = SetCounts()
    found = read("tmx", TMX.encode(), counts=counts)
    assert found == [unit for unit in units_of(TMX.encode()) if None not in unit]
    assert found == [("In fett, hoch\u00a0 und tief.", "In bold, high and low."), ("", "empty & ☺")]
    assert counts.dropped == {"one_language": 3}
    named = TMX.replace("<tmx", '<tmx xmlns="http://www.lisa.org/tmx14"', 1)
    assert named != TMX and read("tmx", named.encode()) == found


@given(st.lists(st.tuples(XML_TEXTS, XML_TEXTS), min_size=1))
def test_tmx_gives_any_sentence_back_folded(pairs):
    (file,) = published("tmx", pairs)
    wanted = [tuple(re.sub("[ \t\n]+", " ", text).strip(" ") for text in pair) for pair in pairs]
    assert read("tmx", file) == wanted


def test_a_variant_in_no_language_is_an_error():
    file = TMX.replace('<tuv lang="en">', "<tuv>").encode()
    assert fault("tmx", file) == "inputs/both: <tu> 3: <tuv> without xml:lang"


LAUGHS = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 9))


@pytest.mark.parametrize(
    "declaration",
    [
        f'<!ENTITY e0 "hahahahahaha">{LAUGHS}',
        '<!ENTITY e8 SYSTEM "file:///etc/hostname">',
        '<!ENTITY % a SYSTEM "http://127.0.0.1:9/x.dtd"> %a;',
        '<!ENTITY e8 PUBLIC "x" "x.gif" NDATA gif>',
        "",
    ],
    ids=["billion laughs", "external", "parameter", "unparsed", "undeclared"],
)
def test_entities_neither_expand_without_bounds_nor_read_files(declaration):
    body = TMX.replace(' SYSTEM "tmx14.dtd"', f" [{declaration}]").replace("fett", "&e8;")
    assert "inputs/both: not sound XML: " in fault("tmx", body.encode())


def test_an_entity_that_an_external_dtd_may_define_is_an_error():
    """Which is not read, so that the text would lack what the entity stands for."""
    file = TMX.replace("fett", "&e8;")
    line = file[: file.index("&e8;")].count("\n") + 1
    message = f"inputs/both: not sound XML: undefined entity &e8;: line {line}, "
    assert fault("tmx", file.encode()).startswith(message)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "windows-1252"])
def test_a_file_is_in_the_encoding_that_it_declares(encoding):
    (file,) = published("tmx")
    rest = file.decode().partition("?>")[2]
    declared = f'<?xml version="1.0" encoding="{encoding}"?>{rest}'
    assert read("tmx", declared.encode(encoding)) == PAIRS


@pytest.mark.parametrize("encoding", ["shift_jis", "klingon"])
def test_an_encoding_that_cannot_be_read_is_an_error(encoding):
    (file,) = published("tmx")
    rest = file.decode().partition("?>")[2]
    declared = f'<?xml version="1.0" encoding="{encoding}"?>{rest}'
    assert fault("tmx", declared.encode()).startswith("inputs/both: not sound XML: ")


def test_a_file_without_one_of_the_languages_is_named_with_its_codes():
    file = published("tmx")[0].replace(b'"en"', b'"fr"')
    assert fault("tmx", file) == (
        "inputs/both: no unit has both de and en. "
        "The language codes in this file are de (4), fr (4)"
    )


def test_line_breaks_written_as_characters_become_spaces():
    (file,) = published("tmx")
    file = file.replace(b" the stove", b"&#10; &#13;&#9; the\n stove")
    assert read("tmx", file) == PAIRS


@pytest.mark.parametrize("deep", [90, 2000, 100_000])
def test_elements_may_be_nested_but_not_without_end(deep):
    nested = b"<tu><tuv xml:lang='de'><seg>" + b"<hi>" * deep + b"eins" + b"</hi>" * deep
    nested += b"</seg></tuv><tuv xml:lang='en'><seg>one</seg></tuv></tu>"
    content = b"<tmx><header/><body>" + nested + b"</body></tmx>"
    if deep < 100:
        assert read("tmx", content) == [("eins", "one")]
    else:
        assert fault("tmx", content) == "inputs/both: <hi> is 101 elements deep"


@pytest.mark.parametrize(
    ("code", "between"),
    [
        ('<ph type="lb"/>', " "),
        ('<ph type="x-tab"/>', " "),
        ("<ph>&lt;text:line-break/&gt;</ph>", " "),
        ("<ph>\\par </ph>", " "),
        ('<ph x="1" type="x-lb">[1]</ph>', " "),
        ('<it pos="begin" type="pb">p</it>', " "),
        ("<ph>&lt;br/&gt;</ph>", " "),
        ('<ph>&lt;BR clear="all"&gt;</ph>', " "),
        ('<bpt i="1">&lt;p class="x"&gt;</bpt>', " "),
        ("<ph>\\n</ph>", " "),
        ("<ph>\n</ph>", " "),
        (" <ph type='lb'/> ", " "),
        ('<bpt i="1" type="bold">&lt;b&gt;</bpt>', ""),
        ("<ph>\n&lt;pre-2&gt;</ph>", ""),
        ('<ph type="index"/>', ""),
    ],
)
def test_a_code_that_breaks_a_line_separates_words(code, between):
    unit = f"<tu><tuv xml:lang='de'><seg>eins{code}zwei</seg></tuv>"
    unit += "<tuv xml:lang='en'><seg>one</seg></tuv></tu>"
    found = read("tmx", f"<tmx><header/><body>{unit}</body></tmx>".encode())
    assert found == [(f"eins{between}zwei", "one")]
