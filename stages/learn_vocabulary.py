"""Learn the BPE merge operations and the vocabularies of a corpus.

If the setting `vocabulary.of` names another corpus, nothing is learned: the stage share_vocabulary
copies the vocabularies of that corpus.

Reads data/tokens/CORPUS.
Writes data/bpe/CORPUS/own.
"""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved_settings
from bleuprint.corpus.stage_text import text_of_stage
from bleuprint.dataset.learn_vocabulary import learn_segmentation
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.json_files import write_json
from bleuprint.serving.pretrained_models import import_named_models


def main() -> None:
    """Learn the vocabularies of the corpus that the command line names."""
    # `__doc__`, the text at the top of this file, is the help; the names are the arguments.
    (corpus_name,) = stage_args.parse_arguments(__doc__, "CORPUS")
    corpus = load_resolved_settings().corpus(corpus_name)
    tokens = text_of_stage("tokens", corpus_name, corpus)
    output_folder = paths.vocabulary_folder(corpus_name, None)
    other_corpus = corpus.vocabulary.shared_from
    if other_corpus is not None:
        # The corpus uses the vocabularies of another corpus, so nothing is learned. But DVC fails
        # if a stage does not write its output, so the name of the other corpus is written.
        with atomic_folder(output_folder) as partial_folder:
            write_json(partial_folder / "of.json", other_corpus)
        return
    import_named_models(corpus.vocabulary, ["corpora", corpus_name, "vocabulary"])
    learn_segmentation(
        corpus_name, corpus.vocabulary, tokens, output_folder, environment.worker_count()
    )


if __name__ == "__main__":
    run_main(main)
