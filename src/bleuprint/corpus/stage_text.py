"""The parallel text that a stage of the pipeline has written for a corpus."""

from pathlib import Path

from bleuprint.config.corpus import Corpus
from bleuprint.config.paths import cleaned_folder, corpus_folder
from bleuprint.text.parallel import TextFolder


def text_of_stage(stage: str, name: str, corpus: Corpus, root: Path = Path()) -> TextFolder:
    """Return the folder with the text that a stage has written, which may not exist.

    Args:
        stage: The stage: clean, dedup, filter, split or tokens.
        name: The name of the corpus, such as `multi30k`; or of one of its language pairs, if it has
            several: `many/en-de`.
        corpus: The settings of the corpus or language pair.
        root: The project's folder.
    """
    folder = cleaned_folder(name, root) if stage == "clean" else corpus_folder(name, stage, root)
    return TextFolder(folder, corpus.source, corpus.target)
