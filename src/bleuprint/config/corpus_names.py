"""Published parallel texts by name: where OPUS and WMT have them.

No URL here is a guess; each pattern is in the code of a tool that downloads by it:

- OPUS, Moses: thammegowda/mtdata, mtdata/index/opus/opus_index.py; the names in the archive and
  CORPUS/VERSION: mozilla/firefox-translations-training, pipeline/data/importers/corpus/opus.sh.
- OPUS, documents and alignments: Helsinki-NLP/OpusTools, opustools_pkg/opustools/opus_get.py
  (the host, and the languages in alphabetical order) and opus_file_handler.py (the paths).
- WMT: thammegowda/mtdata, mtdata/index/statmt.py, also the pairs that a text has.
"""

import re
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

from bleuprint.runtime.schema import SettingError

_OPUS = "https://object.pouta.csc.fi/OPUS-"

# mtdata's names without their languages, which are those of the corpus.
Mtdata = Literal[
    "Statmt-europarl-7",
    "Statmt-europarl-9",
    "Statmt-europarl-10",
    "Statmt-news_commentary-14",
    "Statmt-news_commentary-15",
    "Statmt-news_commentary-16",
    "Statmt-news_commentary-17",
    "Statmt-news_commentary-18",
    "Statmt-news_commentary-18.1",
]
_EUROPARL_LANGUAGES = "bg cs da de el es et fi fr hu it lt lv nl pl pt ro sk sl sv"
_EUROPARL_PAIRS = {
    "7": [f"{language}-en" for language in _EUROPARL_LANGUAGES.split()],
    "9": ["de-en", "cs-en", "cs-pl", "es-pt", "fi-en", "lt-en"],
    "10": ["cs-pl", "de-fr", "es-pt"] + [f"{each}-en" for each in _EUROPARL_LANGUAGES.split()],
}
# In version 14 some pairs are missing; the server then answers 404.
_NEWS_LANGUAGES = "ar cs de en es fr hi id it ja kk nl pt ru zh"
_NEWS_PAIRS = ["-".join(pair) for pair in combinations(_NEWS_LANGUAGES.split(), 2)]


@dataclass(frozen=True)
class Opus:
    """A corpus of OPUS, https://opus.nlpl.eu, as it is called there: NewsCommentary, v16."""

    corpus: str
    version: str

    def __post_init__(self) -> None:
        for key, value in vars(self).items():
            if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9_.-]*", value):
                raise SettingError([key], f"{value!r} is no name of OPUS")
        if re.fullmatch("[0-9.]+", self.version):
            raise SettingError(["version"], f"{self.version!r}: did you mean 'v{self.version}'?")

    def moses(self, source: str, target: str) -> tuple[str, tuple[str, str]]:
        """The URL of the archive with a sentence a line, and the names of both sides in it."""
        pair = "-".join(sorted((source, target)))
        url = f"{_OPUS}{self.corpus}/{self.version}/moses/{pair}.txt.zip"
        return url, (f"{self.corpus}.{pair}.{source}", f"{self.corpus}.{pair}.{target}")

    def documents(self, language: str) -> str:
        """The URL of the archive of untokenized XML documents."""
        return f"{_OPUS}{self.corpus}/{self.version}/raw/{language}.zip"

    def alignment(self, source: str, target: str) -> str:
        """The URL of the sentence alignment of the documents (XCES)."""
        pair = "-".join(sorted((source, target)))
        return f"{_OPUS}{self.corpus}/{self.version}/xml/{pair}.xml.gz"


class Statmt(NamedTuple):
    """A text of WMT: a tsv file, its columns source and target, or an archive with `members`."""

    url: str
    columns: tuple[int, int]
    members: tuple[str, str] | None


def statmt(name: Mtdata, source: str, target: str) -> Statmt:
    """Where a text of WMT is; raises ValueError if it does not have the pair."""
    _, corpus, version = name.split("-")
    pairs = _EUROPARL_PAIRS[version] if corpus == "europarl" else _NEWS_PAIRS
    given = {f"{source}-{target}": (1, 2), f"{target}-{source}": (2, 1)}
    pair = next((pair for pair in pairs if pair in given), None)
    if pair is None:
        near = [each for each in pairs if {source, target} & set(each.split("-"))]
        raise ValueError(f"{name} has no {source}-{target}; it has {', '.join(near or pairs)}")
    if corpus == "news_commentary":
        file = f"news-commentary-v{version.partition('.')[0]}.{pair}.tsv.gz"
        folder = f"http://data.statmt.org/news-commentary/v{version}/training"
        return Statmt(f"{folder}/{file}", given[pair], None)
    folder = f"http://www.statmt.org/europarl/v{version}"
    if version == "7":
        members = (f"europarl-v7.{pair}.{source}", f"europarl-v7.{pair}.{target}")
        return Statmt(f"{folder}/{pair}.tgz", given[pair], members)
    return Statmt(f"{folder}/training/europarl-v{version}.{pair}.tsv.gz", given[pair], None)


def opus_name(url: str) -> str | None:
    """Corpus, version and languages of a URL of OPUS, for messages; None for any other URL."""
    found = re.fullmatch(rf"{_OPUS}([^/]+)/([^/]+)/[a-z]+/([^/.]+)\..*", url)
    return f"{found[1]} {found[2]} of {found[3]}" if found else None
