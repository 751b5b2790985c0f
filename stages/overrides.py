"""Write the settings that systems have on single corpora, for DVC to compare by cell."""

from bleuprint.config.experiment import load
from bleuprint.config.paths import OVERRIDES
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.runtime.files import write_json


def main() -> None:
    stage_args.names(__doc__)
    write_json(OVERRIDES, load().overrides())


if __name__ == "__main__":
    run(main)
