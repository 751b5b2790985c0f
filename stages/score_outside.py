"""Score translations of a corpus's test sets that were not made here."""

from bleuprint.config.experiment import load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.runtime.progress import working
from bleuprint.serving.score_outside import score_outside


def main() -> None:
    (corpus,) = stage_args.names(__doc__, "CORPUS")
    with working(f"score_outside {corpus}"):
        score_outside(load_resolved(), corpus)


if __name__ == "__main__":
    run(main)
