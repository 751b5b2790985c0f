"""Downloads a Marian model of Hugging Face by its name and commit."""

import re
from pathlib import Path

from bleuprint.config.corpus_files import File
from bleuprint.corpus.download.fetch import Downloads, fetch
from bleuprint.dataset.marian_vocabulary import (
    SOURCE_VOCABULARY,
    TARGET_VOCABULARY,
    has_separate_vocabularies,
)
from bleuprint.model.marian_config import CONFIG
from bleuprint.model.marian_weights import PICKLED_WEIGHTS, WEIGHTS
from bleuprint.runtime.errors import UserError

_FILES = (CONFIG, "tokenizer_config.json", SOURCE_VOCABULARY, "source.spm", "target.spm")
# OWNER/NAME@COMMIT. Models are repositories of Git; a commit has 40 hexadecimal digits.
_NAME = re.compile(r"([\w.-]+/[\w.-]+)@([0-9a-f]{40})")
_NAME_WITHOUT_COMMIT = re.compile(r"[\w-][\w.-]*/[\w.-]+(?:@.*)?")


def is_name(text: str) -> bool:
    """Return whether a text is the name of a model with a commit, and not a folder.

    Args:
        text: What the user has given: a folder, or OWNER/NAME@COMMIT.

    Raises:
        UserError: It is neither, but could be a name without a commit.
    """
    if _NAME.fullmatch(text):
        return True
    if not Path(text).exists() and _NAME_WITHOUT_COMMIT.fullmatch(text):
        name = text.partition("@")[0]
        raise UserError(
            f"{text} is not a folder. For a model of Hugging Face, add its commit: "
            f"{name}@COMMIT, with the 40 digits under Files and versions on the model's page"
        )
    return False


def download_marian(name: str, downloads: Downloads, folder: Path) -> None:
    """Download the files of a model from Hugging Face.

    Their SHA-256 is recorded in downloads.lock.

    Args:
        name: The name of the model and a commit: OWNER/NAME@COMMIT.
        downloads: Where files are downloaded from, and where they are kept.
        folder: The folder that gets a link to each file, with the file's name.

    Raises:
        UserError: A file cannot be downloaded.
    """
    match = _NAME.fullmatch(name)
    assert match is not None, "the caller has asked is_name"
    base_url = f"https://huggingface.co/{match[1]}/resolve/{match[2]}"
    folder.mkdir(parents=True, exist_ok=True)
    for file_name in _FILES:
        _link_file(base_url, file_name, downloads, folder)
    if has_separate_vocabularies(folder):
        _link_file(base_url, TARGET_VOCABULARY, downloads, folder)
    try:
        _link_file(base_url, WEIGHTS, downloads, folder)
    except UserError as error:
        # Older models have only the second file.
        try:
            _link_file(base_url, PICKLED_WEIGHTS, downloads, folder)
        except UserError as other_error:
            raise UserError(f"{error}; {other_error}") from None
    downloads.record()


def _link_file(base_url: str, file_name: str, downloads: Downloads, folder: Path) -> None:
    """Download a file, unless it was downloaded before, and link it in a folder.

    Args:
        base_url: The address of the model's files.
        file_name: The name of the file.
        downloads: Where files are downloaded from, and where they are kept.
        folder: The folder that gets the link.
    """
    path = fetch(File(url=f"{base_url}/{file_name}"), downloads)
    link = folder / file_name
    link.unlink(missing_ok=True)
    link.symlink_to(path.resolve())
