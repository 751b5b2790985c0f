"""The training text of IWSLT (train.tags.de-en.de and .en): talks with what is told of each.

Read as fairseq's prepare-iwslt14.sh reads it: lines of metadata go, of title and description
only the tags. The 2014 text of German and English thus has 174,443 pairs (of which the script's
length limits then leave 167,522). Tags that only later years have go too, as in fairseq's
prepare-iwslt17-multilingual.sh.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from bleuprint.corpus.download.formats.plain import read_plain
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

# Wherever in the line, as grep finds them.
_METADATA = re.compile("<(url>|talkid>|keywords>|speaker>|reviewer|translator|doc|/doc>)")
_TEXT = re.compile("<(title|description)>")
_TAGS = re.compile("</?(?:title|description)>")


def read_ted_tags(
    streams: Sequence[BinaryIO], names: Sequence[str], dropped: Counter[str]
) -> Iterator[Pair]:
    """The pairs of two files; raises UserError where their lines are of different kinds."""
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
            dropped["metadata"] += 1
        else:
            yield Pair(_TAGS.sub("", pair.source), _TAGS.sub("", pair.target))


def _kind(line: str) -> str:
    """What a line is, in words."""
    tag = _METADATA.search(line) or _TEXT.search(line)
    return f"<{tag[1].rstrip('>')}>" if tag else "a sentence"
