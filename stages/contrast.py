"""Test an averaged model on pairs of a right and a wrong translation."""

from bleuprint.config.experiment import load_resolved
from bleuprint.config.paths import folder
from bleuprint.contrast.outcomes import contrast_tests
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run


def main() -> None:
    cell, settings = stage_args.cell(__doc__), load_resolved()
    folders = folder(cell.corpus, "binary"), folder(cell.corpus, "tokens")
    settings.check_seed(cell.seed)
    settings.system_on(cell.system, cell.corpus)
    contrast_tests(settings.corpus(cell.corpus), *folders, cell.models / "averaged", cell.results)


if __name__ == "__main__":
    run(main)
