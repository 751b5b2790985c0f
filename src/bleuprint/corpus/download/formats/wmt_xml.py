"""The format wmt-xml: WMT's test sets since 2021, one XML file with sources and references.

A document, <doc>, contains the segments of its source, <src>, and of its references, <ref>, each by
another translator; translations by systems, <hyp>, are ignored. Sentences are those of sacreBLEU.
"""

from collections.abc import Iterator, MutableSequence
from typing import BinaryIO
from xml.etree import ElementTree

from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

# The sentences of a document in one language, by the number of the segment.
Segments = dict[int, str]


def read_wmt_xml(
    stream: BinaryIO, name: str, translator: str | None, documents: MutableSequence[str]
) -> Iterator[Pair]:
    """Read the sentence pairs of a test set of WMT, with the references of one translator.

    As in sacreBLEU, documents of test suites are skipped, and so are segments without any
    reference. A segment that only other translators have translated gets an empty reference.
    Several spaces or line breaks in a row become one space.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.
        translator: The translator, such as `A`. None if the file has references of one translator,
            who may have no name.
        documents: A list to which the id of each pair's document is appended.

    Raises:
        UserError: The file is not well-formed XML, a segment has no number, or the translator is
            missing or unclear.
    """
    translators = dict[str, None]()  # In the order of the file, each once.
    for document in _documents(stream, name):
        document_id = document.get("id", "")
        references = dict[str, Segments]()
        for element in document.iter("ref"):
            references[element.get("translator", "")] = _segments(element, name, document_id)
        translators.update(dict.fromkeys(references))
        if translator is None and len(translators) > 1:
            raise UserError(
                f"{name}: contains references of {_listed(translators)}. Name one: reference: "
                f"{_first_named(translators)}"
            )
        wanted = translator if translator is not None else _first_named(translators)
        sources = Segments()
        for element in document.iter("src"):
            sources.update(_segments(element, name, document_id))
        for number in sorted(sources):
            has_reference = any(segments.get(number) for segments in references.values())
            if not has_reference:
                continue
            documents.append(document_id)
            yield Pair(sources[number], references.get(wanted, Segments()).get(number, ""))
    if translator is not None and translator not in translators:
        raise UserError(
            f"{name}: no references of translator {translator!r}. The file contains references of "
            f"{_listed(translators)}"
        )


def _listed(translators: dict[str, None]) -> str:
    """Return the names of translators for a message."""
    return ", ".join(translator or "an unnamed translator" for translator in translators) or "none"


def _first_named(translators: dict[str, None]) -> str:
    """Return the first translator with a name; an empty text if there is none."""
    return next(filter(None, translators), "")


def _documents(stream: BinaryIO, name: str) -> Iterator[ElementTree.Element]:
    """Yield the documents of the file one by one, except those of test suites.

    Neither a DTD nor an external entity is read, and the parser (expat) limits the size of other
    entities.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.

    Raises:
        UserError: The file is not well-formed XML.
    """
    try:
        for _, element in ElementTree.iterparse(stream):
            if element.tag != "doc":
                continue
            if "testsuite" not in element.attrib:
                yield element
            element.clear()  # Frees memory.
    # An unknown or wrong encoding raises LookupError or ValueError.
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise UserError(f"{name}: not well-formed XML: {error}") from None


def _segments(element: ElementTree.Element, name: str, document_id: str) -> Segments:
    """Return the sentences of a source or reference by their numbers.

    Args:
        element: The element <src> or <ref>.
        name: The name of the file in messages.
        document_id: The id of the document.

    Raises:
        UserError: A segment has no number.
    """
    segments = Segments()
    for segment in element.iter("seg"):
        segment_id = segment.get("id", "")
        try:
            number = int(segment_id)
        except ValueError:
            raise UserError(
                f"{name}: a <seg> of doc {document_id!r} has the id {segment_id!r}. It must be a "
                "number"
            ) from None
        segments[number] = " ".join((segment.text or "").split())
    return segments
