"""Count a binarised corpus: lengths of sentences, words and units, vocabularies."""

from bleuprint import command, layout
from bleuprint.binary import BinaryCorpus
from bleuprint.census import Census
from bleuprint.errors import run
from bleuprint.settings import load


def main() -> None:
    (name,) = command.names(__doc__, "CORPUS")
    load().corpus(name)
    corpus = BinaryCorpus(layout.folder(name, "binary"))
    Census.of(corpus).write(layout.folder(name, "statistics") / layout.CENSUS)


if __name__ == "__main__":
    run(main)
