"""Learn how the languages of a corpus are segmented and numbered."""

from bleuprint import command, environment, layout
from bleuprint.errors import run
from bleuprint.learning import learn_segmentation
from bleuprint.pairs import TextFolder
from bleuprint.settings import load


def main() -> None:
    (name,) = command.names(__doc__, "CORPUS")
    corpus = load().corpus(name)
    tokens = TextFolder(layout.folder(name, "tokens"), corpus.source, corpus.target)
    folder = layout.folder(name, "bpe")
    learn_segmentation(name, corpus.vocabulary, tokens, folder, environment.workers())


if __name__ == "__main__":
    run(main)
