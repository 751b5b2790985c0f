"""The works that an experiment should cite, for its texts and its methods, as BibTeX."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bleuprint.config.citation import entries
from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import Settings
from bleuprint.report.published import literature
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.foreign_text import remove_controls
from bleuprint.text.segmenter import segmenter_packages

# An entry of methods.bib, with the comment above it: the method that cites it (* for every
# experiment), and the reason that the output shows.
_METHOD_ENTRY = re.compile(r"^% ([^:\n]+): ([^\n]+)\n(@.*?^})$", re.MULTILINE | re.DOTALL)


class _Citation(NamedTuple):
    """Some works to cite, and the reason: a text, a published number or a method that was used.

    Attributes:
        reason: The reason, in one line, such as `published: Vaswani et al. 2017, Table 2`.
        bibtex: The works, as one or more BibTeX entries.
        origin: The setting or file that contains the entries, for messages.
    """

    reason: str
    bibtex: str
    origin: str


@dataclass
class _Entry:
    """A BibTeX entry of the output, which may be cited for several reasons.

    Attributes:
        bibtex: The entry.
        origin: The setting or file that contains the entry, for messages.
        reasons: The reasons to cite it, one line each.
    """

    bibtex: str
    origin: str
    reasons: list[str] = field(default_factory=list)


def citations(settings: Settings) -> str:
    """Return all works that a paper on an experiment should cite, as BibTeX.

    They are cited for texts of a corpus, for published numbers, or for methods. Each entry occurs
    once, below comments with the reasons to cite it:

        % wmt14, train: CC BY 4.0
        @inproceedings{bojar-2014, …}

    Args:
        settings: The settings of the experiment.

    Raises:
        UserError: Two different entries have the same key.
    """
    entries_by_key: dict[str, _Entry] = {}
    for citation in _all_citations(settings):
        # One citation may consist of several BibTeX entries.
        for key, bibtex in entries(citation.bibtex):
            entry = entries_by_key.setdefault(key, _Entry(bibtex, citation.origin))
            # Differences in white space do not count.
            is_same_entry = entry.bibtex.split() == bibtex.split()
            if not is_same_entry:
                raise UserError(
                    f"{citation.origin}: the key {key} names another entry in {entry.origin}. "
                    "Rename one of them"
                )
            entry.reasons.append(citation.reason)
    texts = []
    for entry in entries_by_key.values():
        comments = "".join(f"% {reason}\n" for reason in entry.reasons)
        texts.append(f"{comments}{entry.bibtex}\n")
    return remove_controls("\n".join(texts))


def _all_citations(settings: Settings) -> Iterator[_Citation]:
    """Yield the works to cite: for texts first, then for published numbers, then for methods."""
    yield from _text_citations(settings)
    yield from _published_citations(settings)
    yield from _method_citations(settings)


def _text_citations(settings: Settings) -> Iterator[_Citation]:
    """Yield the works to cite for the texts of each corpus.

    In params.yaml, each text of a corpus names an entry of `license_and_citation`. Texts with the
    same entry are cited together, for a reason such as `wmt14, train valid: CC BY 4.0`.
    """
    for corpus_name, corpus in settings.corpora.items():
        texts_by_key: dict[str, list[str]] = {}
        for text_name, text in corpus.files.texts().items():
            texts_by_key.setdefault(text.license_and_citation, []).append(text_name)
        for key, text_names in texts_by_key.items():
            about = corpus.license_and_citation[key]
            reason = f"{corpus_name}, {' '.join(text_names)}: {about.license}"
            yield _Citation(
                reason=" ".join(reason.split()),  # A license may have several lines.
                bibtex=about.bibtex,
                origin=f"corpora.{corpus_name}.license_and_citation.{key}.bibtex",
            )


def _published_citations(settings: Settings) -> Iterator[_Citation]:
    """Yield the works to cite for the published numbers that the report shows.

    They are the Transformer paper, if a test set occurs in its Table 2, and the works that
    params.yaml gives for its own published numbers.
    """
    if _shows_table_2(settings):
        path = Path(literature.__file__).with_name("table_2.bib")
        bibtex = path.read_text(encoding="utf-8")
        yield _Citation(f"published: {literature.TABLE_2_SOURCE}", bibtex, path.name)
    for position, number in enumerate(settings.published):
        if number.bibtex:
            origin = f"published.{position}.bibtex"
            yield _Citation(f"published: {number.name}", number.bibtex, origin)


def _shows_table_2(settings: Settings) -> bool:
    """Return whether the report shows numbers of the Transformer paper's Table 2.

    It does if a corpus of the experiment contains a test set that the table has numbers for.
    """
    for corpus_name, corpus in settings.corpora.items():
        for test in corpus.files.tests:
            if literature.is_in_table_2(corpus_name, test):
                return True
    return False


def _method_citations(settings: Settings) -> Iterator[_Citation]:
    """Yield the works to cite for the methods that the experiment uses, such as BPE or Adam.

    They are entries of the file methods.bib, each below a comment with a method and the reason to
    cite it, such as `% adam: training: Adam`. Every experiment cites the entries with the method *.
    """
    path = Path(__file__).with_name("methods.bib")
    used_methods = _used_methods(settings)
    bibtex = path.read_text(encoding="utf-8")
    for method, reason, entry in _METHOD_ENTRY.findall(bibtex):
        if method == "*" or method in used_methods:
            yield _Citation(reason, entry, path.name)


def _used_methods(settings: Settings) -> set[str]:
    """Return the names of the methods that an experiment uses, such as `adam`.

    methods.bib contains the works to cite for some of these names. Many of them are simply the
    values of settings; a name that methods.bib does not contain is ignored.
    """
    methods = set[str]()
    if len(settings.trained_systems) > 1:
        methods.add("compared")  # Significance tests, for example.
    for corpus_name, corpus in settings.corpora.items():
        methods |= _preparation_methods(corpus)
        methods |= settings.text_methods(corpus_name)
        for system in settings.trained_systems_on(corpus_name).values():
            methods.add(system.model.positional_encoding)
            methods.add(system.model.normalization)
            methods.add(system.model.activation)
            methods.add(system.train.optimizer.name)
            if system.train.label_smoothing:
                methods.add("smoothing")
            if system.train.bpe_dropout:
                methods.add("dropout")  # This means BPE-dropout.
    return methods


def _preparation_methods(corpus: Corpus) -> set[str]:
    """Return the names of the methods that prepare a corpus, such as `bpe` or `moses`.

    methods.bib contains the works to cite for some of these names; other names are ignored.

    Args:
        corpus: The settings of the corpus.
    """
    # Some methods are used whenever the corpus has a setting for them, and are called like it.
    methods = {setting for setting, value in vars(corpus).items() if value is not None}
    if corpus.vocabulary.bpe:
        methods.add("bpe")
    if corpus.vocabulary.sentencepiece:
        methods.add("sentencepiece")
        model_type = corpus.vocabulary.sentencepiece.model_type
        # In methods.bib, `bpe` means a vocabulary with the setting `bpe`, not SentencePiece's BPE.
        if model_type != "bpe":
            methods.add(model_type)
    # The name of the corpus, here empty, only becomes part of the keys, which are not needed.
    for language_pair in corpus.language_pairs("").values():
        tokenizer = language_pair.tokenize.name
        methods.add(tokenizer)
        if tokenizer == "segmenter":
            # Languages such as Japanese are split by packages such as fugashi, all others by Moses.
            packages = segmenter_packages(list(language_pair.languages))
            if packages:
                methods |= {"moses", *packages}
    return methods
