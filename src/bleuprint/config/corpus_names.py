"""Parallel texts of OPUS by name.

The patterns are in the code of tools that download by them: of the archives thammegowda/mtdata,
mtdata/index/opus/opus_index.py; of the names in them, and of CORPUS/VERSION,
mozilla/firefox-translations-training, pipeline/data/importers/corpus/opus.sh.
"""

import re
from dataclasses import dataclass

from bleuprint.runtime.schema import SettingError

_OPUS = "https://object.pouta.csc.fi/OPUS-"


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
