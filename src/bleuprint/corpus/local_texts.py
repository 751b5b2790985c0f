"""Find out which texts of a corpus are on this machine, so that notes on them can be printed."""

from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import Text
from bleuprint.text.parallel import TextFolder


def has_local_files(text: Text) -> bool:
    """Return whether all files of a text are in inputs/, so that nothing must be downloaded."""
    return all(file.path is not None and Path(file.path).is_file() for file in text.files)


def find_downloaded_set(name: str, corpus: Corpus, set_name: str) -> TextFolder | None:
    """Find a set of a corpus that the stage download has written before.

    Args:
        name: The name of the corpus.
        corpus: The settings of the corpus.
        set_name: The name of the set, such as test.news.

    Returns:
        The folder of the downloaded sets; None if it does not contain both sides of this set.
    """
    folder = TextFolder(paths.download_folder(name), *corpus.languages)
    for path in folder.files(set_name):
        if not path.is_file():
            return None
    return folder
