"""Write the MD5 of the files in inputs/ that each corpus names, for DVC to compare by corpus."""

from bleuprint.config.experiment import load
from bleuprint.config.paths import INPUTS
from bleuprint.pipeline import stage_args
from bleuprint.pipeline.params_files import input_files
from bleuprint.runtime.errors import run
from bleuprint.runtime.files import write_json


def main() -> None:
    stage_args.names(__doc__)
    write_json(INPUTS, input_files(load()))


if __name__ == "__main__":
    run(main)
