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
from bleuprint.text.language_codes import includes, normalized_tag
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
    """Yield a pair for each unit that contains both languages.

    Language codes are compared by the language that they name, without regard to case: `en` accepts
    `en-US`, `EN_gb` and `eng`. A tag with a script or region accepts only that variant. If a unit
    has several variants in a language, the first one with text is used. Runs of white space, line
    breaks included, become one space.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.
        languages: The codes or tags of source and target, such as `en-GB` and `de`.
        counts: Counts the units without one of the languages as dropped, by `one_language`.

    Raises:
        UserError: The file is not sound XML, a variant has no language, or no unit contains both
            languages.
    """
    source_tag = normalized_tag(languages[0])
    target_tag = normalized_tag(languages[1])
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
    """Count the units of a file by the language codes in which they contain text.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.

    Returns:
        The number of units with each set of codes. Codes are those of the file, such as `EN_us`,
        each once and in the order of the unit.

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
    """Return the number of units with each language code, in the order of first occurrence."""
    unit_counts: Counter[str] = Counter()
    for codes, unit_count in code_sets.items():
        for code in codes:
            unit_counts[code] += unit_count
    return unit_counts


def listed_codes(unit_counts: Counter[str]) -> str:
    """List language codes with their numbers of units, the most frequent first."""
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
    """Yield the variants of a unit that contain a segment.

    Args:
        unit: The element <tu>.
        location: The file and the number of the unit, for messages.

    Raises:
        UserError: A variant has no language code.
    """
    for element in unit.iter("tuv"):
        # `lang` is the attribute of TMX 1.1.
        code = (element.get(_XML_LANG) or element.get("lang") or "").strip()
        if not code:
            raise UserError(f"{location}: <tuv> without xml:lang")
        segment = element.find(".//seg")
        if segment is not None:
            text = _XML_SPACE.sub(" ", _segment_text(segment))
            yield _Variant(code, text.strip(" "))


def _distinct_codes(variants: Iterable[_Variant]) -> list[str]:
    """Return the language codes of variants, each once, in the order of first occurrence."""
    return list(dict.fromkeys(variant.code for variant in variants))


def _text_in_language(wanted_tag: str, variants: Sequence[_Variant]) -> str | None:
    """Return the first text in a language that is not empty.

    Args:
        wanted_tag: The language, as `normalized_tag` writes it.
        variants: The variants of a unit.

    Returns:
        The text; empty if all texts in the language are empty; None without a variant in it.
    """
    texts = []
    for variant in variants:
        if includes(wanted_tag, normalized_tag(variant.code)):
            texts.append(variant.text)
    if not texts:
        return None
    for text in texts:
        if text:
            return text
    return ""


def _units(stream: BinaryIO, name: str) -> Iterator[ElementTree.Element]:
    """Yield the <tu> elements of a file, with one in memory at a time.

    Neither a DTD nor an external entity is read, and expat limits the size of other entities.

    Raises:
        UserError: The file is not sound XML, or elements are nested too deeply.
    """
    # The elements whose end has not been read yet, the outermost first.
    open_elements: list[ElementTree.Element] = []
    try:
        for event, element in ElementTree.iterparse(stream, ("start", "end")):
            if event == "start":
                element.tag = element.tag.rpartition("}")[2]  # without its namespace
                open_elements.append(element)
                depth = len(open_elements)
                if depth > _MAX_DEPTH:
                    raise UserError(f"{name}: <{element.tag}> is {depth} elements deep")
                continue
            open_elements.pop()
            if element.tag == "tu":
                yield element
            # A unit, and whatever lies outside of units, is not needed any more. Units lie in
            # <tmx><body>, two elements deep.
            is_outside_of_units = len(open_elements) <= 2
            if open_elements and (is_outside_of_units or element.tag == "tu"):
                open_elements[-1].clear()
    # A LookupError or ValueError is an unknown or wrong encoding.
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise UserError(f"{name}: not sound XML: {error}") from None


def _segment_text(element: ElementTree.Element) -> str:
    """Return the text of a segment without codes; a code that breaks a line becomes a space."""
    parts = [element.text or ""]
    for child in element:
        if child.tag not in _CODE_ELEMENTS:
            parts.append(_segment_text(child))
        elif _breaks_line(child):
            parts.append(" ")
        parts.append(child.tail or "")
    return "".join(parts)


def _breaks_line(code: ElementTree.Element) -> bool:
    """Return whether a code breaks a line, by its type or by what it contains."""
    code_type = code.get("type", "").lower().removeprefix("x-")
    return code_type in _LINE_BREAK_TYPES or _LINE_BREAK_CODE.match(code.text or "") is not None
