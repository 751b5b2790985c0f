"""The format moses: an archive with a plain text file per language, as OPUS publishes its texts.

The zip of OPUS contains `NAME.de-en.de` and `NAME.de-en.en`, whose lines translate each other, and
files about them: README, LICENSE, and often `NAME.de-en.ids`. `side_members` finds the two texts
by their languages; they are then read as plain text.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from bleuprint.corpus.download.archive import without_compression
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import join_with_and, list_first
from bleuprint.text.bcp47 import tags_of_language

# The folder in which the archives of macOS keep what is not part of the files.
_MACOS_FOLDER = "__MACOSX"
# The number of files of an archive that a message lists.
_MAX_LISTED = 6


def side_members(
    members: Sequence[str], languages: tuple[str, str], archive: str
) -> tuple[str, str]:
    """Find the source and the target text in an archive, by their languages.

    Both have the same name up to the language at its end: `NAME.de-en.de` and `NAME.de-en.en`.

    Args:
        members: The names of all files in the archive.
        languages: The codes of source and target.
        archive: The name of the archive in messages.

    Returns:
        The names of both files.

    Raises:
        UserError: No pair of files, or more than one, is in both languages.
    """
    pairs = []
    for texts in texts_by_stem(members).values():
        source = _text_in_language(texts, languages[0])
        target = _text_in_language(texts, languages[1])
        # A file in `zh` is in both zh-Hans and zh-Hant, but it is not its own translation.
        if source is not None and target is not None and source != target:
            pairs.append((source, target))
    if len(pairs) == 1:
        return pairs[0]
    wanted = join_with_and(languages)
    if not pairs:
        raise UserError(
            f"{archive}: no two files are named alike and end in {wanted}, such as "
            f"x.{languages[0]} and x.{languages[1]}. The archive contains "
            f"{listed_members(members)}. Name two files, source and target, each with its "
            "archive_member"
        )
    sources = [source for source, _ in pairs]
    raise UserError(
        f"{archive}: {len(pairs)} pairs of files are in {wanted}: {listed_members(sources)}, and "
        "their translations. Name two files, source and target, each with its archive_member"
    )


def texts_by_stem(members: Sequence[str]) -> dict[str, dict[str, str]]:
    """Collect the files of an archive that may be texts, by their names without the language.

    Args:
        members: The names of all files in the archive.

    Returns:
        For each name without its last part, such as `NAME.de-en`, the files by their last part,
        the language: `{"de": "NAME.de-en.de", "en": "NAME.de-en.en"}`. Extensions such as .gz and
        .txt do not count as parts. A last part need not be a language: `ids` is among them, too.
    """
    texts: dict[str, dict[str, str]] = {}
    for member in without_macos_files(members):
        path = PurePosixPath(member)
        # Cut by length, since the name without compression is in lower case.
        name_length = len(without_compression(path.name).removesuffix(".txt"))
        stem, _, language = path.name[:name_length].rpartition(".")
        texts.setdefault(str(path.parent / stem), {})[language] = member
    return texts


def without_macos_files(members: Sequence[str]) -> list[str]:
    """Return the files of an archive without those that macOS adds, such as __MACOSX/._a.de.

    Args:
        members: The names of all files in the archive.
    """
    return [member for member in members if _MACOS_FOLDER not in PurePosixPath(member).parts]


def listed_members(members: Sequence[str]) -> str:
    """List the first files of an archive for a message."""
    return list_first(members, _MAX_LISTED) if members else "nothing"


def _text_in_language(texts: dict[str, str], language: str) -> str | None:
    """Return the file in a language, or None.

    Args:
        texts: The files by the language at the end of their names.
        language: The wanted language, such as `pt-BR`. A file with this tag is preferred; otherwise
            one in the same language, such as `por`, is returned if it is the only one.
    """
    name_ends = tags_of_language(texts, language)
    return texts[name_ends[0]] if len(name_ends) == 1 else None
