"""Learn how the languages of a corpus are segmented and numbered, unless another corpus says it."""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved
from bleuprint.dataset.learn_vocabulary import learn_segmentation
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.files import atomic_folder, write_json
from bleuprint.text.parallel import TextFolder


def main() -> None:
    (name,) = stage_args.names(__doc__, "CORPUS")
    corpus = load_resolved().corpus(name)
    tokens = TextFolder(paths.folder(name, "tokens"), corpus.source, corpus.target)
    folder = paths.vocabulary(name, None)
    if of := corpus.vocabulary.of:
        with atomic_folder(folder) as partial:
            write_json(partial / "of.json", of)
        return
    learn_segmentation(name, corpus.vocabulary, tokens, folder, environment.worker_count())


if __name__ == "__main__":
    run_main(main)
