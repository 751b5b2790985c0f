"""Write the settings after inheritance and defaults, and the code's fingerprints, for DVC."""

from bleuprint.config.experiment import load
from bleuprint.pipeline import stage_args
from bleuprint.pipeline.leftovers import set_aside
from bleuprint.pipeline.resolve import resolve
from bleuprint.runtime.errors import UserError, run


def main() -> None:
    stage_args.names(__doc__)
    if resolve():  # this run of DVC has the stages of those before
        raise UserError("systems that `over` makes have changed: start the same command again")
    set_aside(load())


if __name__ == "__main__":
    run(main)
