"""The works that an experiment should cite, for its texts and its methods, as BibTeX."""

import re
from collections.abc import Iterator
from pathlib import Path

from bleuprint.config.citation import entries
from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import Settings
from bleuprint.report.published import literature
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.foreign_text import remove_controls
from bleuprint.text.segmenter import segmenter_packages

# Above each entry of methods.bib: the method that cites it, * for every experiment, and what for.
_METHOD = r"^% ([^:\n]+): ([^\n]+)\n(@.*?^})$"


def citations(settings: Settings) -> str:
    """The BibTeX of the whole experiment, each entry once, in the order of first use.

    Above an entry is a comment for each use of it: corpus, texts and license, or the method. Raises
    UserError if one key names two different entries.
    """
    cited: dict[str, tuple[str, str, list[str]]] = {}
    for reason, bibtex, place in (*_texts(settings), *_published(settings), *_methods(settings)):
        for key, entry in entries(bibtex):
            first, first_place, reasons = cited.setdefault(key, (entry, place, []))
            if first.split() != entry.split():
                raise UserError(f"{place}: {key} is another entry in {first_place}: rename one")
            reasons.append(f"% {reason}\n")
    texts = (f"{''.join(reasons)}{entry}\n" for entry, _, reasons in cited.values())
    return remove_controls("\n".join(texts))


def _texts(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """A comment of one line, BibTeX and its place, for the texts of each corpus."""
    for name, corpus in settings.corpora.items():
        named: dict[str, list[str]] = {}
        for text, files in corpus.files.texts().items():
            named.setdefault(files.license_and_citation, []).append(text)
        for key, texts in named.items():
            about = corpus.license_and_citation[key]
            reason = " ".join(f"{name}, {' '.join(texts)}: {about.license}".split())
            yield reason, about.bibtex, f"corpora.{name}.license_and_citation.{key}.bibtex"


def _published(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """The same for the published numbers of the table."""
    tests = (
        (name, test) for name, corpus in settings.corpora.items() for test in corpus.files.tests
    )
    if any(literature.is_in_table_2(*each) for each in tests):
        path = Path(literature.__file__).with_name("table_2.bib")
        yield f"published: {literature.SOURCE}", path.read_text(encoding="utf-8"), path.name
    for place, number in enumerate(settings.published):
        if number.bibtex:
            yield f"published: {number.name}", number.bibtex, f"published.{place}.bibtex"


def _methods(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """The same for the methods that the experiment uses."""
    path, used = Path(__file__).with_name("methods.bib"), _used(settings)
    bibtex = path.read_text(encoding="utf-8")
    for method, reason, entry in re.findall(_METHOD, bibtex, re.MULTILINE | re.DOTALL):
        if method == "*" or method in used:
            yield reason, entry, path.name


def _used(settings: Settings) -> set[str]:
    """The methods of an experiment, by the values of its settings."""
    used = {"compared"} if len(settings.trained_systems) > 1 else set[str]()
    for name, corpus in settings.corpora.items():
        used |= _used_to_prepare(corpus)
        used |= settings.text_methods(name)
        for system in settings.trained_systems_on(name).values():
            model, train = system.model, system.train
            used |= {model.positional_encoding, model.normalization, model.activation}
            used |= {train.optimizer.name}
            used |= {"smoothing" if train.label_smoothing else ""}
            used |= {"dropout" if train.bpe_dropout else ""}
    return used


def _used_to_prepare(corpus: Corpus) -> set[str]:
    """The methods that prepare a corpus: its settings that are given, and some of their values."""
    used = {setting for setting, value in vars(corpus).items() if value is not None}
    if corpus.vocabulary.bpe:
        used.add("bpe")
    if corpus.vocabulary.sentencepiece:
        used |= {"sentencepiece", corpus.vocabulary.sentencepiece.model_type.replace("bpe", "")}
    for pair in corpus.language_pairs("").values():
        used.add(pair.tokenize.name)
        if pair.tokenize.name == "segmenter":
            packages = segmenter_packages([*pair.languages])
            used |= {"moses", *packages} if packages else set()
    return used
