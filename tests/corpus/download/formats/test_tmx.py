"""TMX: the units with both languages are read, without their codes for formatting."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleuprint.corpus.steps.filter_stats import SetCounts
from parallel_formats import PAIRS, XML_TEXTS, published_files, read_error, read_pairs

# Five units, of which two have text in German and in English.
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


# The elements of a sentence that contain codes for formatting, not text.
CODE_ELEMENTS = ("bpt", "ept", "ph", "it", "ut")


def text_of(element):
    """Return the text of a segment, without codes."""
    text = ""
    if element.tag not in CODE_ELEMENTS:
        text = element.text or ""
    if element.tag in ("seg", "hi"):
        for child in element:
            text += text_of(child) + (child.tail or "")
    return text


def units_of(content):
    """Return the German and English text of each unit, from a tree of the whole file.

    The first variant in a language counts. A language that a unit lacks is None.
    """
    units = []
    for unit in ElementTree.fromstring(content).iter("tu"):
        text_by_language: dict[str, str] = {}
        for variant in unit.findall("tuv"):
            code = variant.get("{http://www.w3.org/XML/1998/namespace}lang") or variant.get("lang")
            segment = variant.find("seg")
            if segment is not None:
                text = re.sub("[ \t\n]+", " ", text_of(segment)).strip(" ")
                text_by_language.setdefault(code[:2].lower(), text)
        units.append((text_by_language.get("de"), text_by_language.get("en")))
    return units


def test_units_are_read_without_codes():
    pairs = read_pairs("tmx", TMX.encode())

    assert pairs == [unit for unit in units_of(TMX.encode()) if None not in unit]
    assert pairs == [("In fett, hoch\u00a0 und tief.", "In bold, high and low."), ("", "empty & ☺")]


def test_units_with_one_language_are_dropped():
    """The file TMX has five units; three of them lack a German or an English text."""
    counts = SetCounts()

    read_pairs("tmx", TMX.encode(), counts=counts)

    assert counts.dropped == {"one_language": 3}


def test_a_file_with_an_xml_namespace_is_read_like_one_without():
    with_namespace = TMX.replace("<tmx", '<tmx xmlns="http://www.lisa.org/tmx14"', 1)
    assert with_namespace != TMX

    assert read_pairs("tmx", with_namespace.encode()) == read_pairs("tmx", TMX.encode())


@given(st.lists(st.tuples(XML_TEXTS, XML_TEXTS), min_size=1))
def test_any_sentence_of_tmx_is_read_back_with_folded_spaces(pairs):
    """A TMX segment may be wrapped over several lines of the file; the sentence must not be."""
    content = published_files("tmx", pairs)[0]

    pairs_read = read_pairs("tmx", content)

    expected = []
    for source, target in pairs:
        folded_source = re.sub("[ \t\n]+", " ", source).strip(" ")
        folded_target = re.sub("[ \t\n]+", " ", target).strip(" ")
        expected.append((folded_source, folded_target))
    assert pairs_read == expected


def test_a_variant_without_a_language_is_an_error():
    content = TMX.replace('<tuv lang="en">', "<tuv>").encode()

    assert read_error("tmx", content) == "inputs/both: <tu> 3: a <tuv> has no attribute xml:lang"


def billion_laughs():
    """Return declarations of entities of which each repeats the one before it ten times."""
    declarations = '<!ENTITY e0 "hahahahahaha">'
    for number in range(1, 9):
        repeated = f"&e{number - 1};" * 10
        declarations += f'<!ENTITY e{number} "{repeated}">'
    return declarations


@pytest.mark.parametrize(
    "declaration",
    [
        pytest.param(billion_laughs(), id="billion laughs"),
        pytest.param('<!ENTITY e8 SYSTEM "file:///etc/hostname">', id="external"),
        pytest.param('<!ENTITY % a SYSTEM "http://127.0.0.1:9/x.dtd"> %a;', id="parameter"),
        pytest.param('<!ENTITY e8 PUBLIC "x" "x.gif" NDATA gif>', id="unparsed"),
        pytest.param("", id="undeclared"),
    ],
)
def test_an_entity_that_would_expand_without_bounds_or_read_a_file_is_an_error(declaration):
    content = TMX.replace(' SYSTEM "tmx14.dtd"', f" [{declaration}]").replace("fett", "&e8;")

    assert "inputs/both: not well-formed XML: " in read_error("tmx", content.encode())


def test_an_entity_that_only_an_external_dtd_may_define_is_an_error():
    """An entity is a name for a piece of text, here &e8;, which the file itself does not define.

    An external DTD might define it, but external files are not read. Without an error, the sentence
    would silently lack this text.
    """
    content = TMX.replace("fett", "&e8;")
    line = content[: content.index("&e8;")].count("\n") + 1

    message = read_error("tmx", content.encode())

    assert message.startswith(
        f"inputs/both: not well-formed XML: undefined entity &e8;: line {line}, "
    )


def tmx_file_in(encoding, codec):
    """Return a TMX file that declares an encoding, written by a codec of Python."""
    _, _, body = published_files("tmx")[0].decode().partition("?>")
    return f'<?xml version="1.0" encoding="{encoding}"?>{body}'.encode(codec)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "windows-1252"])
def test_a_file_is_read_in_the_encoding_that_it_declares(encoding):
    assert read_pairs("tmx", tmx_file_in(encoding, codec=encoding)) == PAIRS


@pytest.mark.parametrize("encoding", ["shift_jis", "klingon"])
def test_a_file_in_an_encoding_that_cannot_be_read_is_an_error(encoding):
    message = read_error("tmx", tmx_file_in(encoding, codec="utf-8"))

    assert message.startswith("inputs/both: not well-formed XML: ")


def test_a_file_without_one_of_the_languages_is_an_error_that_lists_its_languages():
    """The published file has four units in German and English; here, English becomes French."""
    content = published_files("tmx")[0].replace(b'"en"', b'"fr"')

    assert read_error("tmx", content) == (
        "inputs/both: no unit has both de and en. "
        "The language codes in this file are de (4), fr (4)"
    )


def test_line_breaks_and_tabs_written_as_character_references_become_spaces():
    content = published_files("tmx")[0]
    content = content.replace(b" the stove", b"&#10; &#13;&#9; the\n stove")

    assert read_pairs("tmx", content) == PAIRS


def tmx_unit(german_segment):
    """Return a TMX file of one unit with this German and the English text "one"."""
    return (
        f"<tmx><header/><body><tu><tuv xml:lang='de'><seg>{german_segment}</seg></tuv>"
        "<tuv xml:lang='en'><seg>one</seg></tuv></tu></body></tmx>"
    ).encode()


def test_elements_of_a_sentence_may_be_nested():
    nested = "<hi>" * 90 + "eins" + "</hi>" * 90

    assert read_pairs("tmx", tmx_unit(nested)) == [("eins", "one")]


@pytest.mark.parametrize("depth", [2000, 100_000])
def test_elements_nested_more_than_100_deep_are_an_error(depth):
    """Deep nesting must not exhaust the stack of the process."""
    nested = "<hi>" * depth + "eins" + "</hi>" * depth

    message = read_error("tmx", tmx_unit(nested))
    assert message == "inputs/both: <hi> is nested 101 elements deep; the limit is 100"


@pytest.mark.parametrize(
    "code",
    [
        '<ph type="lb"/>',
        '<ph type="x-tab"/>',
        "<ph>&lt;text:line-break/&gt;</ph>",
        "<ph>\\par </ph>",
        '<ph x="1" type="x-lb">[1]</ph>',
        '<it pos="begin" type="pb">p</it>',
        "<ph>&lt;br/&gt;</ph>",
        '<ph>&lt;BR clear="all"&gt;</ph>',
        '<bpt i="1">&lt;p class="x"&gt;</bpt>',
        "<ph>\\n</ph>",
        "<ph>\n</ph>",
        " <ph type='lb'/> ",
    ],
)
def test_a_code_that_breaks_a_line_separates_words(code):
    assert read_pairs("tmx", tmx_unit(f"eins{code}zwei")) == [("eins zwei", "one")]


@pytest.mark.parametrize(
    "code",
    [
        '<bpt i="1" type="bold">&lt;b&gt;</bpt>',
        "<ph>\n&lt;pre-2&gt;</ph>",
        '<ph type="index"/>',
    ],
)
def test_a_code_that_breaks_no_line_does_not_separate_words(code):
    assert read_pairs("tmx", tmx_unit(f"eins{code}zwei")) == [("einszwei", "one")]
