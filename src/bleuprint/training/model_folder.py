"""The folder of a trained model, with all that another project needs to use it."""

import shutil
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.paths import Run
from bleuprint.dataset.binarized import SEGMENTATION, BinaryCorpus


def copy_model(run: Run, output: Path) -> None:
    """Copy the averaged model of a training, together with its vocabularies, into a folder.

    Args:
        run: The names of the system and the corpus, and the seed of the training.
        output: The folder to write; it must not exist yet.
    """
    shutil.copytree(run.models_folder / "averaged", output)
    corpus = BinaryCorpus(paths.corpus_folder(run.corpus, "binary"))
    for language in (corpus.source, corpus.target):
        shutil.copy(corpus.folder / SEGMENTATION / f"vocabulary.{language}", output)
