"""Translate one side of a monolingual text with a trained system, as synthetic training text.

Reads the text TEXT in data/raw and the averaged model of SYSTEM on CORPUS with the first seed.
Writes the synthetic sentence pairs to data/raw, next to the downloaded text.
"""

import sys

from bleuprint.model.arithmetic import check_portable, restart

# torch reads environment variables when it is imported. So this process restarts with the
# variables of its system's arithmetic before the imports below.
# Arguments 2 and 3 are SYSTEM and CORPUS.
restart(*sys.argv[2:4])

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.pipeline import stage_args
from bleuprint.runtime.distributed.gpus import hold_gpus_for_torch
from bleuprint.runtime.errors import run_main
from bleuprint.serving.back_translate import back_translate


def main() -> None:
    """Translate the text that the command line names."""
    # `__doc__`, the text at the top of this file, is the help; the names are the arguments.
    text_name, system, corpus = stage_args.parse_arguments(__doc__, "TEXT", "SYSTEM", "CORPUS")
    settings = load_resolved_settings()
    if settings.system_on(system, corpus).arithmetic == "portable":
        check_portable(system)
    with hold_gpus_for_torch(max_gpus=1):
        back_translate(settings, text_name)


if __name__ == "__main__":
    run_main(main)
