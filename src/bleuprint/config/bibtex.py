"""BibTeX entries as text."""

from collections.abc import Iterator

import regex

from bleuprint.runtime.schema import SettingError

_HEAD = regex.compile(r"@\w+\s*\{\s*([^\s,{}]+)\s*,")
# An entry up to the end of its braces, which may be nested: (?1) is the group itself.
_ENTRY = regex.compile(r"@\w+\s*(\{(?:[^{}]|(?1))*+\})")


def entries(bibtex: str) -> Iterator[tuple[str, str]]:
    """Each entry with its key; raises ValueError at text that is no entry."""
    rest = bibtex.strip()
    while rest:
        head = _HEAD.match(rest)
        if head is None:
            line = rest.partition("\n")[0]
            raise ValueError(f"{line[:40]!r} does not begin an entry, '@type{{key,'")
        entry = _ENTRY.match(rest)
        if entry is None:
            raise ValueError(f"the braces of entry {head[1]!r} are not balanced")
        yield head[1], entry[0]
        rest = rest[entry.end() :].lstrip()


def check(bibtex: str) -> None:
    """Raise SettingError of the key `bibtex` unless the text is one or more entries."""
    try:
        keys = [key for key, _ in entries(bibtex)]
    except ValueError as error:
        raise SettingError(["bibtex"], str(error)) from None
    if not keys:
        raise SettingError(["bibtex"], "is empty: an entry begins with '@type{key,'")
