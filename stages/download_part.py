"""Download a part of a corpus, check its checksums, and extract the text as lines.

A part is a training text that `parts` in params.yaml names.

Reads the addresses or local paths in its settings.
Writes data/part_raw/CORPUS/PART, and the filtering statistics
data/filter_stats/CORPUS/parts/PART/download.json.
"""

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.corpus.download.fetch import downloads_of_environment
from bleuprint.corpus.parts import corpus_for_part, download_part
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main


def main() -> None:
    """Download the part that the command line names."""
    # `__doc__`, the text at the top of this file, is the help; the names are the arguments.
    corpus_name, part = stage_args.parse_arguments(__doc__, "CORPUS", "PART")
    corpus = corpus_for_part(load_resolved_settings(), corpus_name, part)
    download_part(corpus_name, corpus, part, downloads_of_environment())


if __name__ == "__main__":
    run_main(main)
