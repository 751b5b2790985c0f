"""Commands that prepare, use and compare what the pipeline computes."""

import argparse

from bleuprint.cli import corpus, gap, mlflow, models, pipeline, scores, translate
from bleuprint.runtime.errors import run


def main() -> None:
    """Run the command that the command line names."""
    parser = argparse.ArgumentParser(prog="bleuprint", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for group in (pipeline, corpus, translate, models, scores, gap, mlflow):
        group.add_commands(commands)
    given = parser.parse_args()
    run(lambda: given.command(given))


if __name__ == "__main__":
    main()
