"""sacreBLEU's table of test sets: the addresses, MD5s and files of a test set by its name.

sacreBLEU could download test sets itself, but not from a mirror, and it unpacks them into the home
folder. So only its table is read here, and the stage download fetches the files.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.base import Dataset
from sacrebleu.dataset.plain_text import PlainTextDataset
from sacrebleu.dataset.tsv import TSVDataset
from sacrebleu.dataset.wmt_xml import WMTXMLDataset

from bleuprint.text.language_codes import language_code

_ARCHIVE = re.compile(r"\.(tar|tar\.\w+|tgz|zip)$")
# The zip of a branch at GitHub. It contains a single folder, REPOSITORY-BRANCH.
_GITHUB_ZIP = re.compile(
    r"https://github\.com/[^/]+/(?P<repository>[^/]+)/archive/(?P<branch>.+)\.zip"
)


class UnknownSetError(Exception):
    """The reason why a test set cannot be used, as a message for the user."""


@dataclass(frozen=True)
class SacrebleuTestSet:
    """A test set of sacreBLEU in one language pair.

    Attributes:
        settings: The settings of a text: its files and their format.
        url: The address of its first file.
        bibtex: What to cite; None if sacreBLEU does not say it.
    """

    settings: dict[str, Any]
    url: str
    bibtex: str | None


def find_test_set(
    name: str, languages: Sequence[str], reference: int | str | None
) -> SacrebleuTestSet:
    """Look up a test set of sacreBLEU.

    Args:
        name: The name, such as `wmt14/full`.
        languages: The source and the target language; script and region do not matter.
        reference: The reference, if the test set has several: its number from 1 or, in test sets of
            one XML file, its translator. None for the only one.

    Raises:
        UnknownSetError: There is no such test set in these languages, the reference is unclear, or
            the files of the test set cannot be read by this project.
    """
    dataset = DATASETS.get(name)
    if dataset is None:
        similar_names = difflib.get_close_matches(name, DATASETS, n=3, cutoff=0.8)
        hint = f"Similar names: {', '.join(similar_names)}. " if similar_names else ""
        raise UnknownSetError(
            f"sacreBLEU has no test set {name!r}. {hint}All names: sacrebleu --list"
        )
    files = dataset.langpairs[_language_pair(dataset, languages)]
    if isinstance(dataset, WMTXMLDataset):
        settings = _xml_settings(dataset, files, reference)
    else:
        settings = _settings_of_two_files(dataset, files, reference)
    url = (dataset.data or [""])[0]
    return SacrebleuTestSet(settings=settings, url=url, bibtex=_bibtex(dataset))


def _language_pair(dataset: Dataset, languages: Sequence[str]) -> str:
    """Return sacreBLEU's name of a language pair, such as `en-de`.

    Args:
        dataset: The test set.
        languages: The source and the target language.

    Raises:
        UnknownSetError: The test set is not in these languages.
    """
    wanted = [language_code(language) for language in languages]
    for pair in dataset.langpairs:
        if [language_code(language) for language in pair.split("-")] == wanted:
            return str(pair)
    source, target = languages
    raise UnknownSetError(
        f"sacreBLEU's {dataset.name} does not translate from {source} to {target}. Its language "
        f"pairs: {', '.join(sorted(dataset.langpairs))}"
    )


def _xml_settings(dataset: Dataset, files: Any, reference: int | str | None) -> dict[str, Any]:
    """Return the settings of a test set in one XML file, which contains all references.

    Args:
        dataset: The test set.
        files: sacreBLEU's entry of the language pair: a list with the name of the file, or a
            mapping with this name and the translators.
        reference: The translator that the user names; None if the user names none.

    Raises:
        UnknownSetError: There are several translators, and the user names none of them.
    """
    # The translators of the whole test set, unless the language pair has its own.
    translators = list(dataset.kwargs.get("refs", []))
    if isinstance(files, dict):
        path = files["path"]
        translators = list(files.get("refs", translators))
    else:
        [path] = files
    settings = {"format": "wmt-xml", "both": _file(dataset, path)}
    if reference is not None:
        settings["reference"] = str(reference)
        return settings
    if "" in translators:
        # The file does not name its translator, so it has only one, and there is nothing to choose.
        return settings
    if len(translators) > 1:
        raise UnknownSetError(
            f"sacreBLEU's {dataset.name} has references of {' and '.join(translators)}, but a test "
            f"set here has one. Name one: reference: {translators[0]}"
        )
    settings["reference"] = translators[0]
    return settings


def _settings_of_two_files(
    dataset: Dataset, files: Sequence[str], reference: int | str | None
) -> dict[str, Any]:
    """Return the settings of a test set with a source file and one or more reference files.

    Args:
        dataset: The test set.
        files: The names of the source file and the reference files.
        reference: The number of the reference that the user names, from 1; None if the user names
            none.

    Raises:
        UnknownSetError: There are several references, and the user names none of them.
    """
    source_name, *reference_names = files
    numbers = range(1, len(reference_names) + 1)
    if reference is None and len(reference_names) > 1:
        raise UnknownSetError(
            f"sacreBLEU's {dataset.name} has {len(reference_names)} references, but a test set "
            "here has one. Name one by its number: reference: 1"
        )
    number = 1 if reference is None else reference
    if number not in numbers:
        raise UnknownSetError(
            f"reference is {number!r}, but sacreBLEU's {dataset.name} has references 1 to "
            f"{len(reference_names)}. Write one of these numbers"
        )
    reference_name = reference_names[int(number) - 1]
    if isinstance(dataset, TSVDataset):
        source_column, path = _column_and_path(source_name)
        reference_column, _ = _column_and_path(reference_name)
        columns = [source_column, reference_column]
        return {"format": "tsv", "both": _file(dataset, path), "columns": columns}
    return {
        "format": "plain" if isinstance(dataset, PlainTextDataset) else "sgml",
        "source": _file(dataset, source_name),
        "target": _file(dataset, reference_name),
    }


def _column_and_path(entry: str) -> tuple[int, str]:
    """Return the column, from 1, and the file that sacreBLEU's `2:FILE` names, from 0."""
    index, _, path = entry.partition(":")
    return int(index) + 1, path


def _file(dataset: Dataset, path: str) -> dict[str, Any]:
    """Return the settings of a file of a test set.

    Args:
        dataset: The test set, which consists of one or more downloads.
        path: The name of the file after sacreBLEU has unpacked all downloads in one folder. A
            download that is not an archive is called NAME.FILE there.

    Raises:
        UnknownSetError: It is unclear in which archive the file is.
    """
    prefix = dataset.name.replace("/", "_")
    archives = []
    for url, md5 in zip(dataset.data or (), dataset.md5 or (), strict=True):
        file_name = url.rpartition("/")[2]
        download = {"url": url, "md5": md5}
        if path == f"{prefix}.{file_name}":
            return download
        if _ARCHIVE.search(file_name):
            archives.append(download)
    if len(archives) > 1:
        folder = path.partition("/")[0]
        with_folder = [archive for archive in archives if _only_folder(archive["url"]) == folder]
        # An archive of GitHub contains nothing outside of its folder.
        others = [archive for archive in archives if not _GITHUB_ZIP.fullmatch(archive["url"])]
        archives = with_folder or others
    if len(archives) != 1:
        raise UnknownSetError(
            f"sacreBLEU's {dataset.name} has several archives, and {path} may be in any. Download "
            "the files, and give them as files"
        )
    return {**archives[0], "archive_member": [path]}


def _only_folder(url: str) -> str:
    """Return the name of the folder that an archive contains, if it contains only one.

    It is `en-de` for en-de.tgz of IWSLT, and REPOSITORY-BRANCH for the zip of a branch at GitHub.

    Args:
        url: The address of the archive.
    """
    github = _GITHUB_ZIP.fullmatch(url)
    if github:
        return f"{github['repository']}-{github['branch']}"
    return _ARCHIVE.sub("", url.rpartition("/")[2])


def _bibtex(dataset: Dataset) -> str | None:
    """Return what sacreBLEU cites for a test set, or for the one that a variant belongs to.

    Returns:
        BibTeX entries; None if sacreBLEU names none.
    """
    family = DATASETS.get(dataset.name.partition("/")[0], dataset)
    citation: str | None = dataset.citation or family.citation
    if citation is None:
        return None
    # The entry of wmt19/google lacks its last brace.
    missing_braces = citation.count("{") - citation.count("}")
    return citation + "}" * missing_braces
