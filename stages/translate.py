"""Translate a corpus's test sets with an averaged model."""

from bleuprint.runtime.malloc import reexec_with_malloc_settings

reexec_with_malloc_settings()

from bleuprint.config.experiment import load
from bleuprint.config.paths import folder
from bleuprint.decoding.translate import translate_tests
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run


def main() -> None:
    cell = stage_args.cell(__doc__)
    translate_tests(
        folder(cell.corpus, "binary"),
        cell.models / "averaged",
        load().system(cell.system).decode,
        cell.results,
        cell.timings / "translate.json",
    )


if __name__ == "__main__":
    run(main)
