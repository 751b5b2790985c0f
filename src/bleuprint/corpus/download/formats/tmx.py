"""The format tmx (TMX 1.4): translation memories, units of a sentence in several languages.

A unit, <tu>, contains a variant, <tuv>, for each language, whose segment, <seg>, is the sentence.
Elements inside of segments that mark codes of the original document are not text.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO
from xml.etree import ElementTree

from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import list_first
from bleuprint.text.language_codes import includes_tag, normalized_tag
from bleuprint.text.parallel import Pair

# Elements of a segment that contain codes of the original document; they and the elements inside
# them (sub) are not text. The content of hi is text.
_CODE_ELEMENTS = frozenset({"bpt", "ept", "ph", "it", "ut"})
# Types of codes that break a line, without the prefix "x-".
_LINE_BREAK_TYPES = frozenset(
    {"lb", "pb", "cb", "br", "cr", "tab", "newline", "linebreak", "break"}
)
# Codes that break a line by what they contain: white space, an HTML or OpenDocument tag, or an
# escape of RTF.
_LINE_BREAK_CODE = re.compile(
    r"""
      \s+ \Z
    | \s* ( </? (br|hr|p|h[1-6]|div|li|tr|td|(text:)?(line-break|tab)) \b
          | \\([nrt]|par|line) \s* \Z )
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Deeper elements are refused: reading their text would exceed Python's stack.
_MAX_DEPTH = 100
# The number of language codes that a message lists.
_LISTED_CODES = 12
# XML's white space; other spaces (U+00A0, U+3000) are part of the text.
_XML_SPACE = re.compile("[ \t\r\n]+")
# The attribute xml:lang, as ElementTree names it.
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def read_tmx(
    stream: BinaryIO, name: str, languages: tuple[str, str], counts: SetCounts
) -> Iterator[Pair]:
    """Read the sentence pairs of a translation memory (TMX), an XML file.

    Its units (<tu>) contain a sentence in several languages, each with a language code. The wanted
    code `en` accepts `en-US`, `EN_gb` and `eng`; the wanted code `en-GB` accepts only this variant.
    If a unit has several sentences in a language, the first one with text is used. Several spaces
    or line breaks in a row become one space.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.
        languages: The wanted codes of source and target, such as `en-GB` and `de`.
        counts: Statistics to which units without one of the languages are added as dropped.

    Raises:
        UserError: The file is not sound XML, a variant has no language, or no unit contains both
            languages.
    """
    source_tag = normalized_tag(languages[0])
    target_tag = normalized_tag(languages[1])
    # The number of units with each language code, for the error message.
    unit_counts: Counter[str] = Counter()
    has_pair = False
    for number, unit in enumerate(_units(stream, name), 1):
        variants = list(_variants(unit, f"{name}: <tu> {number}"))
        source_text = _text_in_language(source_tag, variants)
        target_text = _text_in_language(target_tag, variants)
        if source_text is not None and target_text is not None:
            has_pair = True
            yield Pair(source_text, target_text)
        else:
            counts.count_dropped("one_language")
        unit_counts.update(_distinct_codes(variants))
    if not has_pair and unit_counts:
        raise UserError(
            f"{name}: no unit has both {languages[0]} and {languages[1]}. "
            f"The language codes in this file are {listed_codes(unit_counts)}"
        )


def count_code_sets(stream: BinaryIO, name: str) -> Counter[tuple[str, ...]]:
    """Count which languages occur together in the units of a translation memory (TMX).

    A unit contains a sentence in several languages. If 5 units have text in German and English, and
    2 only in German, the result is {("de", "EN_us"): 5, ("de",): 2}.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.

    Returns:
        The number of units for each combination of language codes. The codes are written as in the
        file.

    Raises:
        UserError: The file is not sound XML, or a variant has no language.
    """
    units_by_codes: Counter[tuple[str, ...]] = Counter()
    for number, unit in enumerate(_units(stream, name), 1):
        variants_with_text = []
        for variant in _variants(unit, f"{name}: <tu> {number}"):
            if variant.text:
                variants_with_text.append(variant)
        units_by_codes[tuple(_distinct_codes(variants_with_text))] += 1
    return units_by_codes


def units_by_code(code_sets: Counter[tuple[str, ...]]) -> Counter[str]:
    """Count for each language code of a translation memory how many units have text in it.

    For example, {("de", "en"): 5, ("de",): 2} becomes {"de": 7, "en": 5}.

    Args:
        code_sets: The number of units for each combination of language codes.

    Returns:
        The number of units for each code, in the order of first occurrence.
    """
    unit_counts: Counter[str] = Counter()
    for codes, unit_count in code_sets.items():
        for code in codes:
            unit_counts[code] += unit_count
    return unit_counts


def listed_codes(unit_counts: Counter[str]) -> str:
    """List the language codes of a translation memory for a message: `de (1,200), en (900)`.

    Args:
        unit_counts: The number of units, that is, of sentences, in each language.
    """
    items = []
    for code, unit_count in unit_counts.most_common():
        items.append(f"{code} ({unit_count:,})")
    return list_first(items, _LISTED_CODES)


@dataclass(frozen=True)
class _Variant:
    """The text of a unit in one language.

    Attributes:
        code: The language code as the file writes it.
        text: The text; it may be empty.
    """

    code: str
    text: str


def _variants(unit: ElementTree.Element, location: str) -> Iterator[_Variant]:
    """Yield the sentences that a unit of a translation memory contains in different languages.

    Args:
        unit: The element <tu>, with an element <tuv> for each language.
        location: The file and the number of the unit, for messages.

    Raises:
        UserError: A variant has no language code.
    """
    for element in unit.iter("tuv"):
        # Files of TMX 1.1 have the attribute `lang` in place of `xml:lang`.
        code = (element.get(_XML_LANG) or element.get("lang") or "").strip()
        if not code:
            raise UserError(f"{location}: a <tuv> has no attribute xml:lang")
        segment = element.find(".//seg")
        if segment is not None:
            text = _XML_SPACE.sub(" ", _segment_text(segment))
            yield _Variant(code, text.strip(" "))


def _distinct_codes(variants: Iterable[_Variant]) -> list[str]:
    """Return the language codes of variants, each once, in the order of first occurrence."""
    return list(dict.fromkeys(variant.code for variant in variants))


def _text_in_language(wanted_tag: str, variants: Sequence[_Variant]) -> str | None:
    """Choose the sentence in a language from a unit of a translation memory.

    Of several sentences in the language, such as in `en-GB` and in `en-US`, the first one that is
    not empty is chosen.

    Args:
        wanted_tag: The code of the language in normalized form, such as `en` or `en-gb`.
        variants: The sentences of the unit with their language codes.

    Returns:
        The sentence; empty if all sentences in the language are empty; None if the unit does not
        contain the language.
    """
    texts = []
    for variant in variants:
        if includes_tag(wanted_tag, normalized_tag(variant.code)):
            texts.append(variant.text)
    if not texts:
        return None
    for text in texts:
        if text:
            return text
    return ""


def _units(stream: BinaryIO, name: str) -> Iterator[ElementTree.Element]:
    """Read the units (<tu>) of a translation memory one by one, since the file may be very large.

    A malicious file cannot read other files or fill the memory: neither a DTD nor an external
    entity is read, and the parser (expat) limits the size of other entities.

    Args:
        stream: The bytes of the XML file.
        name: The name of the file in messages.

    Raises:
        UserError: The file is not sound XML, or elements are nested too deeply.
    """
    # The elements whose end has not been read yet, the outermost first.
    open_elements: list[ElementTree.Element] = []
    try:
        for event, element in ElementTree.iterparse(stream, events=("start", "end")):
            if event == "start":
                # ElementTree writes a tag with a namespace as {namespace}tag.
                element.tag = element.tag.rpartition("}")[2]
                open_elements.append(element)
                depth = len(open_elements)
                if depth > _MAX_DEPTH:
                    raise UserError(
                        f"{name}: <{element.tag}> is nested {depth} elements deep; the limit is "
                        f"{_MAX_DEPTH}"
                    )
                continue
            open_elements.pop()
            if element.tag == "tu":
                yield element
            # To free memory, remove from its parent a unit that was read, and each element outside
            # of units. Units lie in <tmx><body>, so an element with up to two parents is outside.
            is_outside_of_units = len(open_elements) <= 2
            if open_elements and (is_outside_of_units or element.tag == "tu"):
                open_elements[-1].clear()
    # An unknown or wrong encoding raises LookupError or ValueError.
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise UserError(f"{name}: not well-formed XML: {error}") from None


def _segment_text(element: ElementTree.Element) -> str:
    """Return the text of a sentence in a translation memory, without formatting codes.

    Elements in a sentence may contain codes of the original document, such as bold type. These are
    dropped; only a code that breaks a line becomes a space.

    Args:
        element: The element <seg>, or an element inside it.
    """
    parts = [element.text or ""]
    for child in element:
        if child.tag not in _CODE_ELEMENTS:
            parts.append(_segment_text(child))
        elif _is_line_break(child):
            parts.append(" ")
        # ElementTree stores the text after an element as its tail.
        parts.append(child.tail or "")
    return "".join(parts)


def _is_line_break(code: ElementTree.Element) -> bool:
    """Return whether a formatting code in a sentence breaks a line, such as `<br>` in HTML.

    Its attribute `type` says so, or the code itself, which is the element's text.
    """
    code_type = code.get("type", "").lower().removeprefix("x-")
    if code_type in _LINE_BREAK_TYPES:
        return True
    return _LINE_BREAK_CODE.match(code.text or "") is not None
