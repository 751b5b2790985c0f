"""The format ted-tags: IWSLT's training text (train.tags.de-en.de and .en), talks with metadata.

Read as by fairseq's prepare-iwslt14.sh: lines of metadata are dropped, and the tags of title and
description removed. The 2014 text of German and English has 174,443 pairs (167,522 within the
script's length limits). Tags of later years are those of prepare-iwslt17-multilingual.sh.
"""

import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from bleuprint.corpus.download.formats.lines import read_plain
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

# Anywhere in the line, as with grep.
_METADATA = re.compile("<(url>|talkid>|keywords>|speaker>|reviewer|translator|doc|/doc>)")
_TEXT = re.compile("<(title|description)>")
_TAGS = re.compile("</?(?:title|description)>")


def read_ted_tags(
    streams: Sequence[BinaryIO], names: Sequence[str], counts: SetCounts
) -> Iterator[Pair]:
    """The pairs of two files; raises UserError if lines of a pair have different tags."""
    for number, pair in enumerate(read_plain(streams, names), 1):
        if "<" not in pair.source and "<" not in pair.target:
            yield pair
            continue
        kinds = [_kind(line) for line in pair]
        if kinds[0] != kinds[1]:
            raise UserError(
                f"{names[0]}:{number}: {kinds[0]}, "
                f"but {names[1]}:{number}: {kinds[1]}: not parallel"
            )
        if _METADATA.search(pair.source):
            counts.count_dropped("metadata")
        else:
            yield Pair(_TAGS.sub("", pair.source), _TAGS.sub("", pair.target))


def _kind(line: str) -> str:
    """The kind of a line, for a message."""
    tag = _METADATA.search(line) or _TEXT.search(line)
    return f"<{tag[1].rstrip('>')}>" if tag else "a sentence"
