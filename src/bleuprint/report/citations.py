"""What an experiment should cite: its texts, and the methods it cannot do without, as BibTeX."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from bleuprint.config.experiment import Corpus, Settings
from bleuprint.runtime.errors import UserError

_HEAD = re.compile(r"@\w+\s*\{\s*([^\s,{}]+)\s*,")

SACREBLEU = """\
@inproceedings{post-2018-call,
  title     = {A Call for Clarity in Reporting BLEU Scores},
  author    = {Post, Matt},
  booktitle = {Proceedings of the Third Conference on Machine Translation: Research Papers},
  year      = {2018},
  pages     = {186--191},
  doi       = {10.18653/v1/W18-6319}
}"""

MOSES = """\
@inproceedings{koehn-etal-2007-moses,
  title     = {Moses: Open Source Toolkit for Statistical Machine Translation},
  author    = {Koehn, Philipp and Hoang, Hieu and Birch, Alexandra and Callison-Burch, Chris and
               Federico, Marcello and Bertoldi, Nicola and Cowan, Brooke and Shen, Wade and
               Moran, Christine and Zens, Richard and Dyer, Chris and Bojar, Ond{\\v{r}}ej and
               Constantin, Alexandra and Herbst, Evan},
  booktitle = {Proceedings of the 45th Annual Meeting of the Association for Computational
               Linguistics Companion Volume Proceedings of the Demo and Poster Sessions},
  year      = {2007},
  pages     = {177--180},
  url       = {https://aclanthology.org/P07-2045}
}"""

BPE = """\
@inproceedings{sennrich-etal-2016-neural,
  title     = {Neural Machine Translation of Rare Words with Subword Units},
  author    = {Sennrich, Rico and Haddow, Barry and Birch, Alexandra},
  booktitle = {Proceedings of the 54th Annual Meeting of the Association for Computational
               Linguistics (Volume 1: Long Papers)},
  year      = {2016},
  pages     = {1715--1725},
  doi       = {10.18653/v1/P16-1162}
}"""

BPE_DROPOUT = """\
@inproceedings{provilkov-etal-2020-bpe,
  title     = {BPE-Dropout: Simple and Effective Subword Regularization},
  author    = {Provilkov, Ivan and Emelianenko, Dmitrii and Voita, Elena},
  booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational
               Linguistics},
  year      = {2020},
  pages     = {1882--1892},
  doi       = {10.18653/v1/2020.acl-main.170}
}"""


class Use(NamedTuple):
    """Why something is cited (a comment, one line), its BibTeX, and where that stands."""

    reason: str
    bibtex: str
    place: str


class _Cited(NamedTuple):
    entry: str
    place: str
    reasons: list[str]


def citations(settings: Settings) -> str:
    """The BibTeX of the whole experiment, each entry once, in the order of first use.

    Above an entry stands a comment for each use of it: corpus, texts and license, or the method.
    Raises UserError if what should be BibTeX is not, or if one key names two different entries.
    """
    cited: dict[str, _Cited] = {}
    for reason, bibtex, place in _uses(settings):
        for key, entry in entries(bibtex, place):
            first = cited.setdefault(key, _Cited(entry, place, []))
            if first.entry.split() != entry.split():
                raise UserError(f"{place}: {key} is another entry in {first.place}: rename one")
            first.reasons.append(reason)
    return "\n".join(
        "".join(f"{line}\n" for line in (*(f"% {why}" for why in found.reasons), found.entry))
        for found in cited.values()
    )


def entries(bibtex: str, place: str) -> Iterator[tuple[str, str]]:
    """Each entry with its key; `place` is what errors call the text."""
    rest = bibtex.strip()
    while rest:
        head = _HEAD.match(rest)
        if head is None:
            line = rest.partition("\n")[0]
            raise UserError(f"{place}: {line[:40]!r} does not begin an entry, '@type{{key,'")
        end = _end(rest)
        if end is None:
            raise UserError(f"{place}: the braces of entry {head[1]} are not balanced")
        yield head[1], rest[:end]
        rest = rest[end:].lstrip()


def _end(text: str) -> int | None:
    """Where the first group of braces is closed; None if it never is."""
    depth = 0
    for place, character in enumerate(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0 and character == "}":
            return place + 1
    return None


def _uses(settings: Settings) -> Iterator[Use]:
    corpora = settings.corpora.values()
    for name, corpus in settings.corpora.items():
        yield from _texts(name, corpus)
    if any(corpus.tokenize.name == "moses" for corpus in corpora):
        yield Use("tokenisation: Moses", MOSES, "bleuprint")
    if any(corpus.vocabulary.bpe for corpus in corpora):
        yield Use("vocabulary: byte-pair encoding", BPE, "bleuprint")
    if any(system.train.bpe_dropout for system in settings.systems.values()):
        yield Use("training: BPE-dropout", BPE_DROPOUT, "bleuprint")
    yield Use("scores: sacreBLEU", SACREBLEU, "bleuprint")


def _texts(name: str, corpus: Corpus) -> Iterator[Use]:
    """What is said about the texts of a corpus, of each text that says it."""
    said: dict[str, list[str]] = {}
    for text, files in corpus.files.texts().items():
        said.setdefault(files.license_and_citation, []).append(text)
    for key, texts in said.items():
        about = corpus.license_and_citation[key]
        reason = " ".join(f"{name}, {' '.join(texts)}: {about.license}".split())
        yield Use(reason, about.bibtex, f"corpora.{name}.license_and_citation.{key}.bibtex")
