"""The format ted-tags: IWSLT's training text (train.tags.de-en.de and .en), talks with metadata.

Read as by fairseq's prepare-iwslt14.sh: lines of metadata are dropped, and the tags of title and
description removed. The 2014 text of German and English has 174,443 pairs (167,522 within the
script's length limits). Tags of later years follow prepare-iwslt17-multilingual.sh.
"""

import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from bleuprint.corpus.download.formats.lines import read_plain
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

# Lines with these tags are metadata. As with the script's grep, they may stand anywhere.
_METADATA = re.compile("<(url>|talkid>|keywords>|speaker>|reviewer|translator|doc|/doc>)")
# Lines with these tags are sentences.
_TEXT = re.compile("<(title|description)>")
_TEXT_TAGS = re.compile("</?(?:title|description)>")


def read_ted_tags(
    streams: Sequence[BinaryIO], names: Sequence[str], counts: SetCounts
) -> Iterator[Pair]:
    """Read the sentence pairs of IWSLT's training text (TED talks), without its metadata.

    Between the sentences of a talk, both files contain lines such as `<url>...</url>`, which are
    dropped. The title and the description of a talk are kept as sentences, without their tags.

    Args:
        streams: The bytes of the source and the target file.
        names: The names of both files in messages.
        counts: Statistics to which lines of metadata are added as dropped.

    Raises:
        UserError: One file is longer, or the lines of a pair have different tags.
    """
    for line_number, pair in enumerate(read_plain(streams, names), 1):
        # Most lines contain no tag, so that the slower search for tags is not needed.
        if "<" not in pair.source and "<" not in pair.target:
            yield pair
            continue
        source_kind = _describe_line(pair.source)
        target_kind = _describe_line(pair.target)
        if source_kind != target_kind:
            raise UserError(
                f"{names[0]}:{line_number}: {source_kind}, "
                f"but {names[1]}:{line_number}: {target_kind}, so the files are not parallel"
            )
        if _METADATA.search(pair.source):
            counts.count_dropped("metadata")
        else:
            yield Pair(
                source=_TEXT_TAGS.sub("", pair.source),
                target=_TEXT_TAGS.sub("", pair.target),
            )


def _describe_line(line: str) -> str:
    """Say for an error message what a line of the text is: its tag, such as `<url>`, or a sentence.

    Tags that are not known may be part of a sentence.
    """
    tag = _METADATA.search(line) or _TEXT.search(line)
    if tag is None:
        return "a sentence"
    tag_name = tag[1].rstrip(">")
    return f"<{tag_name}>"
