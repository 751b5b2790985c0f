"""Write reports/: the table, the records behind it and the summary for DVC."""

import argparse

from bleuprint.errors import run
from bleuprint.report import write_reports
from bleuprint.settings import load


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    settings = load()
    write_reports(settings)


if __name__ == "__main__":
    run(main)
