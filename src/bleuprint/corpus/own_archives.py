"""Find the parallel text in a user's archive: a file per language, or one table or memory.

The command new-corpus calls `find_table` and `archive_sides` for .zip and .tar files.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from bleuprint.config.corpus_files import File
from bleuprint.config.text_formats import format_of_name
from bleuprint.corpus.download.archive import member_names
from bleuprint.corpus.download.formats.moses import (
    listed_members,
    side_members,
    texts_by_stem,
    without_macos_files,
)
from bleuprint.corpus.file_languages import (
    Languages,
    check_two_languages,
    example_languages,
    languages_of_one_file,
)
from bleuprint.runtime.errors import UserError
from bleuprint.text.language_codes import is_listed, language_code


def find_table(archive: File) -> File | None:
    """Find the table or translation memory in an archive.

    Args:
        archive: The archive, a file in inputs/.

    Returns:
        The file in the archive; None if the archive contains neither tables nor memories.

    Raises:
        UserError: The archive is damaged, or contains more than one.
    """
    tables = [name for name in _members(archive) if format_of_name(name) is not None]
    if not tables:
        return None
    if len(tables) > 1:
        raise UserError(
            f"{archive.name}: the archive contains {len(tables)} tables or translation memories: "
            f"{listed_members(tables)}. Unpack it, and name one of them: "
            f"{_unpacking_command(archive)}"
        )
    return replace(archive, archive_member=(tables[0],))


def _unpacking_command(archive: File) -> str:
    """Return the command that unpacks an archive into inputs/."""
    module = "zipfile" if archive.address.lower().endswith(".zip") else "tarfile"
    return f"python -m {module} -e {shlex.quote(archive.address)} inputs"


@dataclass(frozen=True)
class ArchiveSides:
    """The parallel text in an archive with a text file per language.

    Attributes:
        languages: The codes of source and target.
        source: The source file in the archive.
        target: The target file in the archive.
    """

    languages: Languages
    source: File
    target: File


def archive_sides(archive: File, given_languages: Sequence[str] | None) -> ArchiveSides:
    """Choose the source and the target of an archive with a text file per language.

    The languages are those that the user names; otherwise those in the name of the archive;
    otherwise the only two in which the archive has a text.

    Args:
        archive: The archive, a file in inputs/.
        given_languages: The codes of source and target that the user names, or None.

    Raises:
        UserError: The archive is damaged, or the choice is unclear.
    """
    members = _members(archive)
    languages = given_languages or _languages_of_members(archive, members)
    source, target = check_two_languages([Path(archive.name)], *languages)
    source_name, target_name = side_members(members, (source, target), archive.name)
    return ArchiveSides(
        languages=(source, target),
        source=replace(archive, archive_member=(source_name,)),
        target=replace(archive, archive_member=(target_name,)),
    )


def _members(archive: File) -> list[str]:
    """Return the names of the files in an archive, without those that macOS adds."""
    return without_macos_files(member_names(Path(archive.address), archive.address))


def _languages_of_members(archive: File, members: Sequence[str]) -> tuple[str, str]:
    """Return the source and the target language of an archive, by the names of its files.

    If the archive itself is named after two of the languages, as de-en.zip, they are taken.
    Otherwise its texts must have exactly two languages.

    Args:
        archive: The archive; its name is also for messages.
        members: The names of the files in the archive.

    Raises:
        UserError: The archive has no text in two languages, or texts in more than two.
    """
    languages_by_stem = _languages_by_stem(members)
    if not languages_by_stem:
        raise UserError(
            f"{archive.name}: no two files are named alike and end in a language each, such as "
            f"x.de and x.en. The archive contains {listed_members(members)}. Unpack it, and name "
            f"its text files: {_unpacking_command(archive)}"
        )
    # Each language once, in the order of the files.
    all_languages = dict[str, None]()
    for languages in languages_by_stem.values():
        all_languages.update(dict.fromkeys(map(language_code, languages)))
    languages_in_name = languages_of_one_file(Path(archive.name))
    if languages_in_name and set(languages_in_name) <= set(all_languages):
        return languages_in_name
    if len(all_languages) == 1:
        example = " ".join(next(iter(languages_by_stem.values()))[:2])
        raise UserError(
            f"{archive.name}: by their names, all texts in the archive are in "
            f"{', '.join(all_languages)}. Name two of its variants, such as: --languages {example}"
        )
    if len(all_languages) > 2:
        raise UserError(
            f"{archive.name}: the archive has texts in {', '.join(all_languages)}. Name two "
            f"languages, such as: --languages {example_languages(list(all_languages))}"
        )
    first, second = all_languages
    if _are_named_in_reverse(languages_by_stem):
        return second, first
    return first, second


def _are_named_in_reverse(languages_by_stem: Mapping[str, Sequence[str]]) -> bool:
    """Return whether the name of a text has its two languages in the other order than its files.

    Publishers put the source language first in names such as NAME.de-en.de and NAME.de-en.en. Then
    the source is `de`, even if the archive contains the file in English first.

    Args:
        languages_by_stem: The languages of each text in the order of its files, by the common start
            of their names: `{"NAME.de-en": ["en", "de"]}`.
    """
    for stem, (first, second, *_) in languages_by_stem.items():
        if stem.endswith((f"{second}-{first}", f"{second}_{first}")):
            return True
    return False


def _languages_by_stem(members: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the languages of each text that an archive contains in more than one language.

    Args:
        members: The names of the files in the archive.

    Returns:
        The languages, as the names of the files end: `{"NAME.de-en": ["de", "en"]}`.
    """
    languages_by_stem = {}
    for stem, texts in texts_by_stem(members).items():
        languages = [name_end for name_end in texts if _is_language(name_end, stem)]
        if len(languages) > 1:
            languages_by_stem[stem] = languages
    return languages_by_stem


def _is_language(name_end: str, stem: str) -> bool:
    """Return whether the last part of a file's name is a language.

    Args:
        name_end: The last part, such as `de`, or `ids` for a file that is not a text.
        stem: The name without this part. `NAME.en-nso` shows that `nso` is a language, too.
    """
    pair = PurePosixPath(stem).name.rpartition(".")[2]
    return is_listed(name_end) or name_end in re.split("[-_]", pair)
