"""Copy the BPE codes and vocabularies that a corpus shares with another corpus.

The setting `vocabulary.of` of the corpus names the other corpus.

Reads data/bpe/OTHER/own, where OTHER is the other corpus.
Writes data/bpe/CORPUS/shared.
"""

import shutil

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved_settings
from bleuprint.pipeline import stage_args
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import run_main


def main() -> None:
    """Copy the vocabularies of another corpus for the corpus that the command line names."""
    # `__doc__`, the text at the top of this file, is the help; the names are the arguments.
    (corpus_name,) = stage_args.parse_arguments(__doc__, "CORPUS")
    other_corpus = load_resolved_settings().corpus(corpus_name).vocabulary.shared_from
    assert other_corpus is not None, "dvc.yaml has this stage only for corpora with vocabulary.of"
    own_folder_of_other = paths.vocabulary_folder(other_corpus, None)
    with atomic_folder(paths.vocabulary_folder(corpus_name, other_corpus)) as partial_folder:
        shutil.copytree(own_folder_of_other, partial_folder, dirs_exist_ok=True)


if __name__ == "__main__":
    run_main(main)
