"""Lines that other tools wrote, which are read as sentences but are none."""

import re
from collections.abc import Sequence

# A format is named if more than this share of the lines has its mark.
_SHARE = 0.1
_MARKS = {
    re.compile(r"@@( |$)"): "the output of BPE: join it with: sed -E 's/@@( |$)//g'",
    re.compile("(^| )\u2581"): "the output of SentencePiece: join it with: spm_decode",
    re.compile(r"@-@|&(apos|quot|#91|#124);|\w [.!?]$"): (
        "tokens of Moses: restore sentences with detokenizer.perl, or set tokenize: {name: none}"
    ),
    re.compile(r'^\s*\{.*"\s*:.*\},?$'): "JSON: extract the sentences",
    re.compile(r"^[\d:,.]+ --> [\d:,.]+"): "subtitles: extract the sentences",
    re.compile(r'^(msgid|msgstr) "'): "gettext: extract the sentences",
    re.compile(r"^\s*</?(source|target|trans-unit|tuv?|seg)\b"): "XML: extract the sentences",
    re.compile(r'^"[^"]*""(?:[^"]|"")*"\s*$'): "quoted by a spreadsheet: save it as plain text",
}


def tool_format(lines: Sequence[str]) -> str | None:
    """What many of the lines look like, and what to do about it; None if they are sentences."""
    for mark, meaning in _MARKS.items():
        if sum(bool(mark.search(line)) for line in lines) > _SHARE * len(lines):
            return meaning
    return None
