"""Score translations of a corpus's test sets that were not made here with COMET."""

from bleuprint.config.experiment import load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.scoring.comet import score_rows


def main() -> None:
    (corpus,) = stage_args.names(__doc__, "CORPUS")
    score_rows(load_resolved(), corpus)


if __name__ == "__main__":
    run(main)
