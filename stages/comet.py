"""Score a system's translations of a corpus's test sets with COMET."""

from bleuprint.config.experiment import load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.scoring.comet import score_cell


def main() -> None:
    score_cell(load_resolved(), *stage_args.cell(__doc__))


if __name__ == "__main__":
    run(main)
