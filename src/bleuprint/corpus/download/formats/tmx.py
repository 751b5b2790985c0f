"""The format tmx (TMX 1.4): translation memories, units of a sentence in several languages."""

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

# Elements of a seg that contain codes of the original document; they and the elements inside them
# (sub) are not text. The content of hi is text.
_CODES = frozenset({"bpt", "ept", "ph", "it", "ut"})
# Codes that break a line, by their type or as HTML and others.
_BREAK_TYPES = frozenset({"lb", "pb", "cb", "br", "cr", "tab", "newline", "linebreak", "break"})
_BREAK = re.compile(
    r"\s+\Z|\s*(</?(br|hr|p|h[1-6]|div|li|tr|td|(text:)?(line-break|tab))\b|\\([nrt]|par|line)\s*\Z)",
    re.IGNORECASE,
)
_DEEPEST = 100
# Language codes that a message lists.
_MOST_CODES = 12
# XML's white space; other spaces (U+00A0, U+3000) are part of the text.
_SPACE = re.compile("[ \t\r\n]+")
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def read_tmx(
    stream: BinaryIO, name: str, languages: tuple[str, str], counts: SetCounts
) -> Iterator[Pair]:
    """Yield the units that have both languages.

    Language codes are compared by the language that they name, without regard to case: `en` takes
    `en-US`, `EN_gb` and `eng`. A tag with a script or region takes only that variant. Of several
    variants of a unit the first one with text counts. Runs of white space, line breaks included,
    become one space.

    Args:
        stream: the bytes of the file.
        name: the file's name in messages.
        languages: the codes or tags of source and target, such as `en-GB` and `de`.
        counts: counts the units without one of the languages, as `one_language`.

    Raises:
        UserError: the file is not sound XML, a variant has no language, or no unit has both.
    """
    source, target = (normalized_tag(language) for language in languages)
    units_with: Counter[str] = Counter()
    has_pair = False
    for number, unit in enumerate(_units(stream, name), 1):
        variants = list(_variants(unit, f"{name}: <tu> {number}"))
        source_text = _text_in(source, variants)
        target_text = _text_in(target, variants)
        if source_text is not None and target_text is not None:
            has_pair = True
            yield Pair(source_text, target_text)
        else:
            counts.count_dropped("one_language")
        units_with.update(_tags(variants))
    if not has_pair and units_with:
        raise UserError(
            f"{name}: no unit has both {languages[0]} and {languages[1]}. "
            f"The language codes in this file are {listed_codes(units_with)}"
        )


def count_code_sets(stream: BinaryIO, name: str) -> Counter[tuple[str, ...]]:
    """Count the units by the language codes that have text in them.

    Codes are those of the file, such as `EN_us`, each once and in the order of the unit.

    Raises:
        UserError: the file is not sound XML, or a variant has no language.
    """
    units_with: Counter[tuple[str, ...]] = Counter()
    for number, unit in enumerate(_units(stream, name), 1):
        variants = _variants(unit, f"{name}: <tu> {number}")
        codes = _tags(variant for variant in variants if variant.text)
        units_with[tuple(codes)] += 1
    return units_with


def units_by_code(code_sets: Counter[tuple[str, ...]]) -> Counter[str]:
    """Return the number of units with each language code, in the order of first occurrence."""
    units_with: Counter[str] = Counter()
    for codes, units in code_sets.items():
        for code in codes:
            units_with[code] += units
    return units_with


def listed_codes(units_with: Counter[str]) -> str:
    """List codes and their numbers of units, the most frequent first."""
    codes = [f"{code} ({units:,})" for code, units in units_with.most_common()]
    return list_first(codes, _MOST_CODES)


@dataclass(frozen=True)
class _Variant:
    """The text of a unit in one language; `tag`: its code as the file writes it."""

    tag: str
    text: str


def _variants(unit: ElementTree.Element, place: str) -> Iterator[_Variant]:
    """Yield the variants of a unit that have a segment."""
    for element in unit.iter("tuv"):
        tag = (element.get(_LANGUAGE) or element.get("lang") or "").strip()
        if not tag:
            raise UserError(f"{place}: <tuv> without xml:lang")
        segment = element.find(".//seg")
        if segment is not None:
            yield _Variant(tag, _SPACE.sub(" ", _text(segment)).strip(" "))


def _tags(variants: Iterable[_Variant]) -> list[str]:
    """Return the codes of variants, each once, in the order of first occurrence."""
    return list(dict.fromkeys(variant.tag for variant in variants))


def _text_in(wanted: str, variants: Sequence[_Variant]) -> str | None:
    """Return the first text in a language that is not empty; None without a variant in it."""
    texts = [each.text for each in variants if includes(wanted, normalized_tag(each.tag))]
    if not texts:
        return None
    return next(filter(None, texts), "")


def _units(stream: BinaryIO, name: str) -> Iterator[ElementTree.Element]:
    """The <tu> elements, with one in memory at a time.

    Neither a DTD nor an external entity is read, and expat limits what others expand to.
    """
    parents: list[ElementTree.Element] = []
    try:
        for event, element in ElementTree.iterparse(stream, ("start", "end")):
            if event == "start":
                element.tag = element.tag.rpartition("}")[2]  # of whatever namespace
                parents.append(element)
                if len(parents) > _DEEPEST:
                    raise UserError(f"{name}: <{element.tag}> is {len(parents)} elements deep")
                continue
            parents.pop()
            if element.tag == "tu":
                yield element
            if parents and (len(parents) <= 2 or element.tag == "tu"):
                parents[-1].clear()
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # also of its encoding
        raise UserError(f"{name}: not sound XML: {error}") from None


def _text(element: ElementTree.Element) -> str:
    """The text of an element without codes; those that break a line separate words."""
    parts = [element.text or ""]
    for child in element:
        kind = child.get("type", "").lower().removeprefix("x-")
        if child.tag not in _CODES:
            parts.append(_text(child))
        elif kind in _BREAK_TYPES or _BREAK.match(child.text or ""):
            parts.append(" ")
        parts.append(child.tail or "")
    return "".join(parts)
