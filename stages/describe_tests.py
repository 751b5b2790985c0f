"""Describe a corpus's test sets: hashes, lengths, and how rare their words are."""

from bleuprint import command, layout
from bleuprint.errors import run
from bleuprint.settings import load
from bleuprint.testsets import describe_tests
from bleuprint.tokenize import Tokenizing


def main() -> None:
    (name,) = command.names(__doc__, "CORPUS")
    corpus = load().corpus(name)
    split, tokens, tests = (layout.folder(name, stage) for stage in ("split", "tokens", "tests"))
    Tokenizing.of(name, corpus).check_tests()
    describe_tests(name, corpus, split, tokens, tests)


if __name__ == "__main__":
    run(main)
