"""Find out what is in a user's text: its format, its columns and its languages.

The text is in files in inputs/, or has a name such as opus:Books/v1. `own_text` is the entry point
of the command new-corpus. language_check.py then checks that the text is in these languages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bleuprint.config.corpus_files import File, Text
from bleuprint.config.text_formats import TABLES, Format, format_of_name
from bleuprint.corpus.download.archive import is_archive
from bleuprint.corpus.download.download import NO_DOWNLOADS, open_file
from bleuprint.corpus.download.line_ends import ends_lines_in_cr
from bleuprint.corpus.file_languages import (
    Languages,
    check_two_languages,
    example_languages,
    find_languages,
    languages_of_one_file,
    languages_of_two_files,
    parse_language,
)
from bleuprint.corpus.memory_languages import choose_memory_languages
from bleuprint.corpus.other_formats import advice_for_files, has_json_lines
from bleuprint.corpus.own_archives import archive_sides, find_table
from bleuprint.corpus.table_columns import choose_columns
from bleuprint.corpus.text_name import TextName
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.regular_files import describe_non_file
from bleuprint.runtime.streams import printable
from bleuprint.runtime.unicode_paths import path_on_disk
from bleuprint.text.language_codes import language_code


@dataclass(frozen=True)
class OwnText:
    """Parallel text of a user.

    Attributes:
        text: The settings of the files.
        languages: The codes of source and target.
        about: Lines for the user about the columns or language codes that were chosen.
        name: The name of the text; None for files in inputs/.
    """

    text: Text
    languages: Languages
    about: tuple[str, ...] = ()
    name: TextName | None = None


def own_text(
    files: Sequence[Path], languages: Sequence[str] | None, columns: Sequence[str] | None
) -> OwnText:
    """Find out the format and the languages of a user's parallel text.

    The text is in two plain text files, or in one table, translation memory (.tmx) or archive; or
    it has a name, by which it is downloaded.

    Args:
        files: The source file and the target file; one file with both sides; or the name of a text
            in place of a path.
        languages: The codes of source and target that the user names, such as `de` and `en`. None
            to find them in the names of the files, in the first line of a table, in a translation
            memory, or in the names of the files in an archive.
        columns: The numbers or names of a table's source and target column. None to find them.

    Raises:
        UserError: A file is missing, not below inputs/ or in another format, or the languages or
            columns are unclear.
    """
    name = _find_name(files)
    if name is not None:
        return _text_by_name(name, languages, columns)
    if len(files) > 2:
        raise _wrong_files(files)
    settings_of_files = _check_files(files)
    text_format = format_of([path_on_disk(path) for path in files])
    if text_format == "moses":
        # An archive with a single table or translation memory is read as this file.
        table = find_table(settings_of_files[0])
        if table is not None:
            settings_of_files = [table]
            text_format = format_of_name(table.last_name) or text_format
    if columns and text_format not in TABLES:
        raise _columns_without_table(str(files[0]))
    given_languages = _parse_languages(languages)
    if text_format == "plain":
        return _plain_text(files, settings_of_files, given_languages)
    # The other formats have both sides in one file.
    [path] = files
    [file] = settings_of_files
    if text_format in TABLES:
        return _table_text(path, file, text_format, given_languages, columns)
    if text_format == "moses":
        return _archive_text(file, given_languages)
    # Pass the codes as the user typed them: a translation memory distinguishes en-GB and en-US.
    return _memory_text(file, languages)


def _find_name(files: Sequence[Path]) -> TextName | None:
    """Return the name of a text that the user gives in place of files; None for files.

    Args:
        files: The arguments of the command line.

    Raises:
        UserError: The name is incomplete, or there are further arguments.
    """
    for path in files:
        name = TextName.parse(str(path))
        if name is None:
            continue
        if len(files) > 1:
            raise UserError(f"{name.typed}: the name stands for both sides. Give it alone")
        return name
    return None


def _columns_without_table(name: str) -> UserError:
    """Return the error for the option --columns with a text that is not a table."""
    return UserError(
        f"{name}: --columns is only for a .tsv, .csv, .jsonl or .parquet file. Remove it"
    )


def _parse_languages(languages: Sequence[str] | None) -> list[str] | None:
    """Return the languages of the option --languages in their usual form; None without it."""
    if not languages:
        return None
    return [parse_language(code) for code in languages]


def _text_by_name(
    name: TextName, languages: Sequence[str] | None, columns: Sequence[str] | None
) -> OwnText:
    """Find out the languages and the columns of a text that has a name; download it if necessary.

    Args:
        name: The name, of OPUS or Hugging Face.
        languages: The codes of source and target that the user names, or None.
        columns: The source and the target column that the user names, or None.

    Raises:
        UserError: No text has this name, or its languages or columns are unclear.
    """
    if name.kind == "opus":
        return _opus_text(name, languages, columns)
    text_format = format_of_name(name.settings["file"])
    assert text_format is not None
    if columns and text_format not in TABLES:
        raise _columns_without_table(name.typed)
    if text_format in TABLES:
        path = Path(name.typed)
        given_languages = _parse_languages(languages)
        found = _table_text(path, name.file(), text_format, given_languages, columns)
    else:
        found = _memory_text(name.file(), languages)
    return replace(found, name=name)


def _opus_text(
    name: TextName, languages: Sequence[str] | None, columns: Sequence[str] | None
) -> OwnText:
    """Return a corpus of OPUS in two languages.

    Args:
        name: The name, such as opus:Books/v1.
        languages: The codes of source and target that the user names. A code with a script or a
            region is used as it is typed, such as pt_br or pt_BR: OPUS's corpora differ in how they
            write it.
        columns: The columns that the user names. Texts of OPUS have none, so this is a mistake.

    Raises:
        UserError: No languages are named, or columns are.
    """
    if columns:
        raise _columns_without_table(name.typed)
    given_languages = _parse_languages(languages)
    if languages is None or given_languages is None:
        raise UserError(
            f"{name.typed}: OPUS has its texts in many languages. Name two, such as: --languages "
            f"{example_languages([])}"
        )
    source, target = given_languages
    opus_codes = []
    has_variant = False
    for typed_code, language in zip(languages, given_languages, strict=True):
        if language == language_code(language):
            opus_codes.append(language)
        else:
            opus_codes.append(typed_code)
            has_variant = True
    if has_variant:
        name = replace(name, settings={**name.settings, "languages": opus_codes})
    return OwnText(
        text=name.text(given_languages),
        languages=check_two_languages([name.typed], source, target),
        name=name,
    )


def format_of(files: Sequence[Path]) -> Format:
    """Return the format of a user's parallel text, by the names of its files.

    Two files are plain text, one sentence per line. A single file is a table, a translation memory
    or an archive. Plain text, tables and memories may be compressed. A .json file with an object
    per line, as scripts of Hugging Face read it, is in the format jsonl.

    Args:
        files: One or two files.

    Raises:
        UserError: The format is not supported. The message says how to convert the file.
    """
    if len(files) == 1 and has_json_lines(files[0]):
        return "jsonl"
    advice = advice_for_files(files)
    if advice is not None:
        raise UserError(advice)
    if len(files) == 1:
        [path] = files
        text_format = "moses" if is_archive(path.name) else format_of_name(path.name)
        if text_format is None:
            raise _wrong_files(files)
        return text_format
    for path in files:
        file_format = format_of_name(path.name)
        if file_format is not None or is_archive(path.name):
            raise UserError(
                f"{path}: by its name, the file is {file_format or 'an archive'} and contains both "
                "sides. Name it alone. If it is plain text, rename it"
            )
    return "plain"


def _wrong_files(files: Sequence[Path]) -> UserError:
    """Return the error for one file in an unsupported format, or for more than two files."""
    names = ", ".join(str(path) for path in files)
    return UserError(
        f"{names}: not a parallel text. Name two files, source and target, or one .tsv, .csv, "
        ".jsonl, .parquet, .tmx or .zip file"
    )


def _check_files(files: Sequence[Path]) -> list[File]:
    """Check that a user's files can be used, and return how params.yaml refers to them.

    Raises:
        UserError: A file does not exist, has a name that is not UTF-8, is named twice, or is not
            below inputs/, the only folder of the user's texts.
    """
    for path in files:
        if not path_on_disk(path).is_file():
            raise UserError(f"{path}: {describe_non_file(path)}. Name a text file below inputs/")
        if not _is_utf8(str(path)):
            raise UserError(f"{printable(str(path))}: its name is not UTF-8. Rename it")
    if len(files) == 2 and path_on_disk(files[0]).samefile(path_on_disk(files[1])):
        raise UserError(f"{files[0]} is given twice. Name the source file, then the target file")
    try:
        return [File(path=str(path_on_disk(path))) for path in files]
    except ValueError as error:
        # The settings of a file refuse a path that is not below inputs/.
        raise UserError(f"{error}. Copy the files there") from None


def _is_utf8(name: str) -> bool:
    """Return whether the name of a file is UTF-8.

    Python reads other bytes of names as lone surrogates, which cannot be encoded.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain_text(
    files: Sequence[Path], settings_of_files: Sequence[File], given_languages: Sequence[str] | None
) -> OwnText:
    """Find the languages of two plain text files, and whether their lines end in CR.

    Args:
        files: The source file and the target file.
        settings_of_files: The files as params.yaml refers to them.
        given_languages: The codes of source and target that the user gives, or None.

    Raises:
        UserError: The languages are unclear.
    """
    source_file, target_file = map(_with_line_ends, settings_of_files)
    source, target = given_languages or languages_of_two_files(files)
    about = []
    for file in (source_file, target_file):
        if file.line_ends is not None:
            about.append(_line_ends_note(file))
    return OwnText(
        text=Text(license_and_citation="", source=source_file, target=target_file),
        languages=check_two_languages(files, source, target),
        about=tuple(about),
    )


def _archive_text(archive: File, given_languages: Sequence[str] | None) -> OwnText:
    """Find the two texts of an archive with a text file per language, and how their lines end.

    Args:
        archive: The archive as params.yaml refers to it.
        given_languages: The codes of source and target that the user gives, or None.

    Raises:
        UserError: The archive is damaged, or the languages are unclear.
    """
    sides = archive_sides(archive, given_languages)
    about = [
        f"{archive.name}: source is {sides.source.last_name}, target is {sides.target.last_name}"
    ]
    for file in (sides.source, sides.target):
        if _with_line_ends(file).line_ends is not None:
            # The setting of the archive is shared by both files. It also allows LF.
            archive = replace(archive, line_ends="cr")
            about.append(_line_ends_note(file))
    text = Text(license_and_citation="", format="moses", both=archive)
    return OwnText(text, sides.languages, tuple(about))


def _with_line_ends(file: File) -> File:
    """Return a user's file with the setting `line_ends: cr` if its lines end in CR alone."""
    with open_file(file, NO_DOWNLOADS) as stream:
        is_cr = ends_lines_in_cr(stream)
    return replace(file, line_ends="cr") if is_cr else file


def _line_ends_note(file: File) -> str:
    """Return a line for the user about a file whose lines end in CR."""
    return f"{file.name}: its lines end in \\r alone, as on old Macs (line_ends: cr)"


def _table_text(
    path: Path,
    file: File,
    text_format: Format,
    given_languages: Sequence[str] | None,
    columns: Sequence[str] | None,
) -> OwnText:
    """Find the source and target columns and the languages of a table.

    The user may give the languages; otherwise the name of the file or the first line contains them.

    Args:
        path: The file.
        file: The file as params.yaml refers to it, perhaps in an archive.
        text_format: The format of the table, such as csv.
        given_languages: The codes of source and target that the user gives, such as `de` and `en`;
            None if the user gives none.
        columns: The numbers or names of the source and target column that the user gives; None if
            the user gives none.

    Raises:
        UserError: The languages or columns are unclear.
    """
    about = []
    if text_format != "parquet" and file.path is not None:
        file = _with_line_ends(file)
        if file.line_ends is not None:
            about.append(_line_ends_note(file))
    languages = given_languages or _languages_in_names(path, file)
    language_codes = None
    if languages is not None:
        # Columns are named after languages; a script or region does not matter.
        language_codes = [language_code(language) for language in languages]
    chosen = choose_columns(file, text_format, columns, language_codes)
    about.append(chosen.about)
    if languages is None:
        languages = chosen.languages
    if languages is None:
        example = example_languages(find_languages(path))
        raise UserError(
            f"{path}: neither the name of the file nor its header contains two languages. Name "
            f"both, such as: --languages {example}"
        )
    source, target = languages
    return OwnText(
        text=Text(license_and_citation="", format=text_format, both=file, columns=chosen.columns),
        languages=check_two_languages([path], source, target),
        about=tuple(about),
    )


def _languages_in_names(path: Path, file: File) -> Languages | None:
    """Return the languages of a table by its name in an archive, or by the name of the archive.

    Args:
        path: The user's file: the table itself, or the archive.
        file: The table as params.yaml refers to it, perhaps in an archive.

    Returns:
        The codes of both languages; None if neither name contains two.
    """
    return languages_of_one_file(Path(file.last_name)) or languages_of_one_file(path)


def _memory_text(file: File, given_tags: Sequence[str] | None) -> OwnText:
    """Find the source and the target language of a translation memory (.tmx).

    A translation memory contains sentences in two or more languages, each with its language code.

    Args:
        file: The file as params.yaml refers to it, perhaps in an archive.
        given_tags: The codes of source and target that the user gives, such as `de` and `en-GB`;
            None if the user gives none.
    """
    chosen = choose_memory_languages(file, given_tags)
    return OwnText(
        text=Text(license_and_citation="", format="tmx", both=file, languages=chosen.variants),
        languages=chosen.languages,
        about=(chosen.about,),
    )
