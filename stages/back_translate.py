"""Translate one side of a monolingual text with a trained system, as synthetic training text.

Reads the text TEXT in data/raw and the averaged model of SYSTEM on CORPUS with the first seed.
Writes the synthetic sentence pairs to data/raw, next to the downloaded text.

Finished pieces of the text are kept in work/pieces until the whole text is translated.

With --index, --shard or --gather it does a part of this work, so that a cluster can translate a
long text in parallel jobs.
"""

import sys

from bleuprint.model.arithmetic import check_portable, restart

# torch reads environment variables when it is imported. So this process restarts with the
# variables of its system's arithmetic before the imports below.
# Arguments 2 and 3 are SYSTEM and CORPUS. A process that this one starts to translate some pieces
# imports this file, too, and has the variables already.
if __name__ == "__main__":
    restart(*sys.argv[2:4])

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.serving.back_translate import back_translate


def main() -> None:
    """Translate the text that the command line names."""
    # `__doc__`, the text at the top of this file, is the help; the names are the arguments.
    names, work = stage_args.parse_shard(__doc__, "TEXT", "SYSTEM", "CORPUS")
    text_name, system, corpus = names
    settings = load_resolved_settings()
    if settings.system_on(system, corpus).arithmetic == "portable":
        check_portable(system)
    back_translate(settings, text_name, work)


if __name__ == "__main__":
    run_main(main)
