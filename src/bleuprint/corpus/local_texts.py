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
    """Find a data set of a corpus that was downloaded earlier.

    Args:
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        set_name: Data set, such as `train` or `test.flickr2016`.

    Returns:
        The folder of downloaded sets; None if the source or the target file of this set is missing.
    """
    folder = TextFolder(
        path=paths.download_folder(name),
        source=corpus.source,
        target=corpus.target,
    )
    for path in folder.files(set_name):
        if not path.is_file():
            return None
    return folder
