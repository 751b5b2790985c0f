"""A small text as files in each format that the stage download reads.

`published_files` writes it, `read_pairs` reads files, and `read_error` returns the error of files
that cannot be read.
"""

import csv
import io
import json
from html import escape

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import strategies as st

from bleuprint.config.corpus_files import File, Text
from bleuprint.config.text_formats import TABLES, TWO_SIDED
from bleuprint.corpus.download.formats import read_text
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

PAIRS = [
    Pair("Die Katze schläft.", "The cat lies by the stove."),
    Pair("Wann fährt der nächste Zug?", "When does the next train leave?"),
    Pair("Äpfel & Birnen", "Apples & pears"),
    Pair("3 < 4, sagt er.", "3 < 4, he says."),
]
# Texts of characters that XML can contain; with more markup and white space than by chance.
_XML_CHARACTERS = st.characters(
    min_codepoint=0x20, exclude_categories=["Cs"], exclude_characters="\x7f\ufffe\uffff"
)
XML_TEXTS = st.text(_XML_CHARACTERS | st.sampled_from("\n\t&<>]\"' "))


def text_settings(text_format, columns=None):
    """Return the settings of a German-English text in a format.

    Args:
        text_format: The name of the format.
        columns: The columns of a table; as default the first two, or those named `de` and `en`.

    Returns:
        The settings of a text in inputs/both, or in inputs/x.de and inputs/x.en.
    """
    if text_format == "tsv" and columns is None:
        columns = (1, 2)
    if text_format in TABLES:
        return Text("x", text_format, both=File(path="inputs/both"), columns=columns)
    if text_format in TWO_SIDED:
        return Text("x", text_format, both=File(path="inputs/both"))
    source = File(path="inputs/x.de")
    target = File(path="inputs/x.en")
    return Text("x", text_format, source=source, target=target)


def read_pairs(text_format, *contents, counts=None, columns=None, languages=("de", "en")):
    """Return the pairs in files of a format.

    Args:
        text_format: The name of the format.
        contents: The content of the file with both languages, or of the German and English files.
        counts: Counts dropped and joined sentences, if given.
        columns: The columns of a table.
        languages: The languages of source and target.
    """
    streams = [io.BytesIO(content) for content in contents]
    text = text_settings(text_format, columns)
    return list(read_text(text, streams, languages, counts or SetCounts(), []))


def read_error(text_format, *contents, **settings):
    """Return the error message, one line, with which `read_pairs` refuses files."""
    with pytest.raises(UserError) as error:
        read_pairs(text_format, *contents, **settings)
    assert "\n" not in str(error.value)
    return str(error.value)


def published_files(text_format, pairs=PAIRS):
    """Return the contents of the files of a text in a format."""
    sources = [source for source, _ in pairs]
    targets = [target for _, target in pairs]
    files = _WRITERS[text_format](sources, targets)
    return [file if isinstance(file, bytes) else file.encode() for file in files]


# Each of the functions below takes the sentences of both sides, and returns the content of the file
# with both languages, or of the source file and the target file.


def _plain(sources, targets):
    """Return two files with one sentence per line."""
    source_lines = [f"{line}\n" for line in sources]
    target_lines = [f"{line}\n" for line in targets]
    return ["".join(source_lines), "".join(target_lines)]


def _tsv(sources, targets):
    """Return a table with a tab between source and target."""
    lines = []
    for source, target in zip(sources, targets, strict=True):
        lines.append(f"{source}\t{target}\n")
    return ["".join(lines)]


def _csv(sources, targets):
    """Return a table with the header de,en, whose other cells are quoted."""
    output = io.StringIO()
    writer = csv.writer(output, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["de", "en"])
    writer.writerows(zip(sources, targets, strict=True))
    return [output.getvalue()]


def _jsonl(sources, targets):
    """Return lines of JSON in the form of Hugging Face's translation data sets."""
    lines = []
    for source, target in zip(sources, targets, strict=True):
        record = {"translation": {"de": source, "en": target}}
        lines.append(f"{json.dumps(record, ensure_ascii=False)}\n")
    return ["".join(lines)]


def _parquet(sources, targets):
    """Return a Parquet file in the form of Hugging Face's translation data sets."""
    records = []
    for source, target in zip(sources, targets, strict=True):
        records.append({"de": source, "en": target})
    text_fields = pyarrow.struct([("de", pyarrow.string()), ("en", pyarrow.string())])
    column = pyarrow.array(records, type=text_fields)
    output = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"translation": column}), output)
    return [output.getvalue()]


def _ted_tags(sources, targets):
    """Return two files of a TED talk, which begin with its address, number and title in tags."""
    metadata = "<url>http://x</url>\n<talkid>7</talkid>\n<title>Ofen</title>\n"
    return [metadata + side for side in _plain(sources, targets)]


def _sgml_documents(sentences):
    """Return the elements of two documents: a.1 with the first two sentences, b.2 with the rest."""
    segments = []
    for number, sentence in enumerate(sentences, 1):
        segments.append(f'<seg id="{number}"> {sentence} </seg>\n')
    first = f'<doc docid="a.1">\n{"".join(segments[:2])}</doc>\n'
    second = f'<doc docid="b.2">\n{"".join(segments[2:])}</doc>\n'
    return first + second


def _sgml(sources, targets):
    """Return two files in the SGML of WMT: a set of sources, and a set of references."""
    source_documents = _sgml_documents(sources)
    target_documents = _sgml_documents(targets)
    return [
        f'<srcset setid="s" srclang="any">\n{source_documents}</srcset>\n',
        f'<refset setid="s" srclang="any" trglang="en">\n{target_documents}</refset>\n',
    ]


def _ted_xml(sources, targets):
    """Return two files in the XML of the TED test sets of IWSLT."""
    sources = [escape(text) for text in sources]
    targets = [escape(text) for text in targets]
    files = []
    for element in _sgml(sources, targets):
        files.append(f"<?xml version='1.0'?>\n<mteval>\n{element}</mteval>\n")
    return files


def _tmx(sources, targets):
    """Return a translation memory (TMX), with a unit for each pair."""
    units = []
    for source, target in zip(sources, targets, strict=True):
        units.append(
            f'<tu>\n<tuv xml:lang="de"><seg>{escape(source)}</seg></tuv>\n'
            f'<tuv xml:lang="en"><seg>{escape(target)}</seg></tuv>\n</tu>\n'
        )
    return [
        '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
        f'<header srclang="de"/>\n<body>\n{"".join(units)}</body>\n</tmx>\n'
    ]


def _wmt_xml(sources, targets):
    """Return a test set of WMT since 2021: a document with a source and a reference."""
    segments = {}
    for side, sentences in (("src", sources), ("ref", targets)):
        lines = []
        for number, sentence in enumerate(sentences, 1):
            lines.append(f'<seg id="{number}">{escape(sentence)}</seg>\n')
        segments[side] = "".join(lines)
    return [
        '<?xml version="1.0"?>\n<dataset id="x">\n<doc id="a" origlang="de">\n'
        f'<src lang="de"><p>\n{segments["src"]}</p></src>\n'
        f'<ref lang="en" translator="A"><p>\n{segments["ref"]}</p></ref>\n</doc>\n</dataset>\n'
    ]


_WRITERS = {
    "plain": _plain,
    "documents": _plain,
    "tsv": _tsv,
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "ted-tags": _ted_tags,
    "sgml": _sgml,
    "ted-xml": _ted_xml,
    "tmx": _tmx,
    "wmt-xml": _wmt_xml,
}
