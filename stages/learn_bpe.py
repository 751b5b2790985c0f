"""Learn the joint byte-pair encoding of a corpus."""

from bleuprint import command, layout
from bleuprint.bpe import learn_codes
from bleuprint.errors import run
from bleuprint.pairs import TextFolder
from bleuprint.settings import load


def main() -> None:
    (name,) = command.names(__doc__, "CORPUS")
    corpus = load().corpus(name)
    tokens = TextFolder(layout.folder(name, "tokens"), corpus.source, corpus.target)
    learn_codes(name, corpus.learn_bpe.merges, tokens, layout.codes(name))


if __name__ == "__main__":
    run(main)
