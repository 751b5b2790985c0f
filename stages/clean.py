"""Clean the training text of a corpus."""

from bleuprint import command, environment, layout
from bleuprint.clean import Cleaning
from bleuprint.errors import run
from bleuprint.pairs import TextFolder
from bleuprint.settings import load
from bleuprint.step import run_step


def main() -> None:
    name, work = command.shard(__doc__)
    corpus = load().corpus(name)
    step = Cleaning(
        name,
        corpus.clean,
        {kind: list(parts) for kind, parts in corpus.files.sets().items()},
        TextFolder(layout.folder(name, "raw"), corpus.source, corpus.target),
        layout.folder(name, "clean"),
        layout.ledger(name, "clean"),
    )
    run_step(step, layout.shards(name, "clean"), work, environment.workers())


if __name__ == "__main__":
    run(main)
