"""Translate a corpus's test sets with an averaged model."""

import sys

from bleuprint.model.arithmetic import check_portable, restart

restart(*sys.argv[1:3])

from bleuprint.config.cells import settings_sha256
from bleuprint.config.experiment import load_resolved
from bleuprint.config.paths import folder
from bleuprint.decoding.translate import translate_tests
from bleuprint.model.weights import training_fingerprint
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.tracking.timings import translate_file, write_seconds


def main() -> None:
    cell, settings = stage_args.cell(__doc__), load_resolved()
    model = cell.models / "averaged"
    system = settings.system_on(cell.system, cell.corpus)
    if system.arithmetic == "portable":
        check_portable(cell.system)
    seconds = translate_tests(folder(cell.corpus, "binary"), model, system.decode, cell.results)
    training = training_fingerprint(model)
    write_seconds(translate_file(cell, training, settings_sha256(settings, cell)), seconds)


if __name__ == "__main__":
    run(main)
