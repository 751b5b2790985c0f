"""Write the settings after inheritance and defaults, and the code's fingerprints, for DVC."""

from bleuprint.config.experiment import load
from bleuprint.pipeline import stage_args
from bleuprint.pipeline.leftovers import set_aside
from bleuprint.pipeline.resolve import resolve
from bleuprint.runtime.errors import run_main


def main() -> None:
    stage_args.names(__doc__)
    resolve()
    set_aside(load())


if __name__ == "__main__":
    run_main(main)
