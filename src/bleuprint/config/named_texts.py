"""Texts by name: test sets of sacreBLEU, corpora of OPUS, and data sets at Hugging Face.

A text in params.yaml may have a name in place of its files:

- `{sacrebleu: wmt14/full}`, with `reference` if a test set has several;
- `{opus: NewsCommentary/v16}`, with `languages` for OPUS's own codes of variants;
- `{huggingface: NAME, revision: COMMIT, file: FILE}`.

`with_named_texts` is the entry point. It replaces each name by the addresses of its files, so that
the rest of the program sees ordinary texts.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from bleuprint.config.corpus_files import NAMES_OF_TEXTS
from bleuprint.config.described_corpus import change_texts
from bleuprint.config.merge import merge_mappings
from bleuprint.config.text_formats import format_of_name
from bleuprint.runtime.yaml_tree import LocatedMapping, Location
from bleuprint.text.language_codes import language_code, primary_subtag

_LICENSE = "license_and_citation"
# The keys that name a text; further ones say which file or reference of it is meant.
_NAME_KEYS = (*NAMES_OF_TEXTS, "reference", "revision", "file")
# Keys that say how a text is read, and by kind of name those that the user may set.
_READING_KEYS = ("format", "columns", "languages", "reference", "revision", "file")
_ALLOWED_KEYS = {
    "sacrebleu": frozenset({"reference"}),
    "opus": frozenset({"languages"}),
    "huggingface": frozenset({"revision", "file", "format", "columns", "languages"}),
}
_OPUS = "https://object.pouta.csc.fi/OPUS-"
_HUGGING_FACE = "https://huggingface.co/datasets/"
# What a message adds if a file is missing at one of these addresses.
_ADVICE = {
    _OPUS: "Look up the name, the version and the languages at https://opus.nlpl.eu",
    _HUGGING_FACE: "Look up the name, the revision and the file at https://huggingface.co/datasets",
}
# NAME/VERSION, as OPUS writes them in its addresses.
_OPUS_NAME = re.compile(r"(?P<name>[\w.+-]+)/(?P<version>[\w.+-]+)")
# NAME or OWNER/NAME.
_HUGGING_FACE_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_OPUS_CITATION = (
    "@inproceedings{tiedemann-2012-parallel, title = {Parallel Data, Tools and Interfaces in "
    '{OPUS}}, author = {Tiedemann, J{\\"o}rg}, booktitle = {Proceedings of the Eighth '
    "International Conference on Language Resources and Evaluation ({LREC}'12)}, year = {2012}}"
)
_SACREBLEU_CITATION = (
    "@inproceedings{post-2018-call, title = {A Call for Clarity in Reporting {BLEU} Scores}, "
    "author = {Post, Matt}, booktitle = {Proceedings of the Third Conference on Machine "
    "Translation: Research Papers}, year = {2018}, pages = {186--191}}"
)


@dataclass(frozen=True)
class _NamedText:
    """What a name stands for.

    Attributes:
        settings: The settings of the text: its files and their format.
        label: A name for its license in the corpus, such as `opus-Books-v1`.
        license: Where the license is stated.
        bibtex: What to cite.
    """

    settings: Mapping[str, Any]
    label: str
    license: str
    bibtex: str


def with_named_texts(corpus: Any) -> Any:
    """Replace the names of texts in a corpus by the addresses of their files.

    A text that names no license of the corpus gets one that says where the license is stated, and
    what to cite.

    Args:
        corpus: A corpus of one language pair. What is not a mapping is returned unchanged;
            validation refuses it later.

    Raises:
        UserError: A name is unknown, or the text does not exist in the languages of the corpus.
    """
    if not isinstance(corpus, LocatedMapping):
        return corpus
    if not isinstance(corpus.get("files"), LocatedMapping):
        return corpus
    licenses = corpus.get(_LICENSE, LocatedMapping({}, {}))
    if not isinstance(licenses, LocatedMapping):
        return corpus
    new_licenses = LocatedMapping({}, {})

    def change_text(text: LocatedMapping, location: Location) -> LocatedMapping:
        """Return a text with the addresses of its files; one without a name stays unchanged."""
        kinds = [kind for kind in NAMES_OF_TEXTS if kind in text]
        if not kinds:
            return text
        _check_keys(kinds, text, location)
        named = _find_text(kinds[0], text, corpus)
        if _LICENSE not in text:
            text = text.with_value(_LICENSE, named.label, location)
            entry = {"license": named.license, "bibtex": named.bibtex}
            new_licenses[named.label] = _located(entry, location)
            new_licenses.locations[named.label] = location
        return _with_settings(text, named.settings, location)

    files = change_texts(corpus["files"], change_text)
    corpus = corpus.with_value("files", files, corpus.locations["files"])
    if not new_licenses:
        return corpus
    license_location = corpus.locations.get(_LICENSE, corpus.locations["files"])
    return corpus.with_value(_LICENSE, merge_mappings(licenses, new_licenses), license_location)


def _check_keys(kinds: Sequence[str], text: LocatedMapping, location: Location) -> None:
    """Check that nothing but its name says where a text comes from.

    Args:
        kinds: The keys of the text that have a name, such as `opus`; at least one.
        text: The text.
        location: Where it is described, for messages.

    Raises:
        UserError: The text has several names, or files, or a setting that does not go with its
            name.
    """
    if len(kinds) > 1 or not text.keys().isdisjoint(("source", "target", "both")):
        raise location.error(
            f"{kinds[0]} names the text, so it needs no other name and no files. Remove them"
        )
    for key in _READING_KEYS:
        if key in text and key not in _ALLOWED_KEYS[kinds[0]]:
            raise text.locations[key].error(f"{kinds[0]} does not use this setting. Remove it")


def address_advice(url: str) -> str:
    """Return what to do if no file has an address that this module wrote; empty for other ones."""
    for beginning, advice in _ADVICE.items():
        if url.startswith(beginning):
            return f". {advice}"
    return ""


def _find_text(kind: str, text: LocatedMapping, corpus: LocatedMapping) -> _NamedText:
    """Return what the name of a text stands for.

    Args:
        kind: The key that has the name, such as `opus`.
        text: The text.
        corpus: The corpus, whose languages decide which files are used.

    Raises:
        UserError: The name is unknown, or has no text in these languages.
    """
    location = text.locations[kind]
    name = text[kind]
    languages = (corpus.get("source"), corpus.get("target"))
    if not isinstance(name, str):
        raise location.error(f"{name!r} is not a name. Quote it")
    if not all(isinstance(language, str) for language in languages):
        raise location.error("the corpus needs a source and a target language. Name them")
    if kind == "sacrebleu":
        return _sacrebleu_text(name, languages, text.get("reference"), location)
    if kind == "opus":
        return _opus_text(name, languages, text.get("languages"), location)
    return _hugging_face_text(name, text, location)


def _sacrebleu_text(
    name: str, languages: tuple[Any, Any], reference: Any, location: Location
) -> _NamedText:
    """Return a test set of sacreBLEU, by its table of addresses and MD5s.

    Args:
        name: The name, such as `wmt14/full`.
        languages: The languages of the corpus.
        reference: The reference, if the test set has several: its number from 1 or, in test sets
            since 2021, its translator. None if the user names none.
        location: Where params.yaml has the name, for messages.

    Raises:
        UserError: sacreBLEU has no such test set in these languages, or the reference is unclear.
    """
    # Imported here, since it takes a tenth of a second, and few experiments need it.
    from bleuprint.config.sacrebleu_sets import UnknownSetError, find_test_set

    try:
        test_set = find_test_set(name, languages, reference)
    except UnknownSetError as error:
        raise location.error(str(error)) from None
    return _NamedText(
        settings=test_set.settings,
        label=_label("sacrebleu", name),
        license=f"as stated at {test_set.url}",
        bibtex=test_set.bibtex or _SACREBLEU_CITATION,
    )


def _opus_text(
    name: str, languages: tuple[Any, Any], opus_languages: Any, location: Location
) -> _NamedText:
    """Return a corpus of OPUS, whose address consists of name, version and languages.

    Args:
        name: NAME/VERSION, such as `NewsCommentary/v16`.
        languages: The languages of the corpus.
        opus_languages: OPUS's codes of both languages, if the user gives them.
        location: Where params.yaml has the name, for messages.

    Raises:
        UserError: The name lacks a version, or OPUS's code of a language is unclear.
    """
    match = _OPUS_NAME.fullmatch(name)
    if match is None:
        raise location.error(
            f"{name!r} is not a corpus of OPUS. Write NAME/VERSION, such as NewsCommentary/v16"
        )
    codes = opus_languages
    if codes is None:
        codes = [_opus_code(language, location) for language in languages]
    is_pair = isinstance(codes, list) and len(codes) == 2
    if not is_pair or not all(isinstance(code, str) for code in codes):
        raise location.error(
            f"languages is {codes!r}. Write OPUS's codes of source and target, such as [en, pt_BR]"
        )
    # OPUS sorts the languages of a pair.
    pair = "-".join(sorted(codes))
    corpus_name = match["name"]
    url = f"{_OPUS}{corpus_name}/{match['version']}/moses/{quote(pair)}.txt.zip"
    files = {}
    for side, code in zip(("source", "target"), codes, strict=True):
        files[side] = {"url": url, "archive_member": [f"{corpus_name}.{pair}.{code}"]}
    return _NamedText(
        settings={"format": "plain", "languages": None, **files},
        label=_label("opus", name),
        license=f"as stated at https://opus.nlpl.eu/{corpus_name}",
        bibtex=_OPUS_CITATION,
    )


def _opus_code(language: str, location: Location) -> str:
    """Return OPUS's code of a language.

    Args:
        language: The language of the corpus.
        location: Where params.yaml has the name of the text, for messages.

    Raises:
        UserError: The language has a script or a region, for which OPUS's corpora have several
            codes, such as pt_br and pt_BR.
    """
    if language.lower() != primary_subtag(language):
        raise location.error(
            f"OPUS has codes of its own for variants such as {language}. Name the codes of source "
            "and target, such as languages: [en, pt_BR]"
        )
    return language_code(language)


def _hugging_face_text(name: str, text: LocatedMapping, location: Location) -> _NamedText:
    """Return a file of a data set at Hugging Face.

    Args:
        name: The data set, NAME or OWNER/NAME.
        text: The text, with `revision`, `file` and perhaps `format`.
        location: Where params.yaml has the name, for messages.

    Raises:
        UserError: The name is not one of a data set, or the revision or the file is missing.
    """
    if not _HUGGING_FACE_NAME.fullmatch(name):
        raise location.error(
            f"{name!r} is not a data set. Write OWNER/NAME as in its address at {_HUGGING_FACE}"
        )
    for key, example in (("revision", "a commit, or main"), ("file", "data/train.parquet")):
        if not isinstance(text.get(key), str):
            raise location.error(f"the {key} is missing. Name it: {key}: {example}")
    revision = text["revision"]
    file = text["file"]
    url = f"{_HUGGING_FACE}{name}/resolve/{quote(revision, safe='')}/{quote(file)}"
    text_format = text.get("format") or format_of_name(file)
    if text_format is None:
        raise location.error(
            f"the format of {file} is unclear. Name it: format: parquet, jsonl, csv, tsv or tmx"
        )
    label = _label("huggingface", name)
    page = f"{_HUGGING_FACE}{name}"
    return _NamedText(
        settings={"format": text_format, "both": {"url": url}},
        label=label,
        license=f"as stated at {page}",
        bibtex=(
            f"@misc{{{label}, title = {{{name}, a data set at Hugging Face}}, "
            f"howpublished = {{{page}}}, note = {{revision {revision}}}}}"
        ),
    )


def _label(kind: str, name: str) -> str:
    """Return a name for the license of a text: `opus-Books-v1` for `opus: Books/v1`."""
    return re.sub("[^A-Za-z0-9_-]", "-", f"{kind}-{name}")


def _with_settings(
    text: LocatedMapping, settings: Mapping[str, Any], location: Location
) -> LocatedMapping:
    """Return a text with other settings in place of its name.

    Args:
        text: The text.
        settings: The settings by key; a key with None is removed.
        location: Where params.yaml has the text, for messages about these settings.
    """
    text = text.without(*_NAME_KEYS, *settings)
    for key, value in settings.items():
        if value is not None:
            text = text.with_value(key, _located(value, location), location)
    return text


def _located(value: Any, location: Location) -> Any:
    """Return a value in which each mapping knows a location, for messages about its entries."""
    if not isinstance(value, dict):
        return value
    entries = {key: _located(entry, location) for key, entry in value.items()}
    return LocatedMapping(entries, dict.fromkeys(entries, location))
