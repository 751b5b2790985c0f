"""Write all settings after inheritance and defaults, with the fingerprint of each stage's code.

DVC compares the keys of this file to decide which stages are out of date.

Reads params.yaml, corpora, inputs, and the code in src/bleuprint and stages.
Writes reports/resolved.json. Moves results of removed systems and corpora to work/removed.
"""

from bleuprint.config.experiment import load_settings
from bleuprint.pipeline import stage_args
from bleuprint.pipeline.leftovers import move_leftovers
from bleuprint.pipeline.resolve import write_resolved
from bleuprint.runtime.errors import run_main


def main() -> None:
    """Resolve the settings of params.yaml."""
    # `__doc__`, the text at the top of this file, is the help of this script.
    stage_args.parse_arguments(__doc__)
    write_resolved()
    move_leftovers(load_settings())


if __name__ == "__main__":
    run_main(main)
