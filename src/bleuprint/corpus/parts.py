"""The stages of a part: a training text that is downloaded, cleaned and filtered by itself.

They are download_part, clean_part and filter_part. The stage dedup of the corpus then reads the
filtered text of all its parts. DVC has these stages for each corpus and each part that any corpus
has; if the corpus does not have the part, their outputs are empty.
"""

from collections.abc import Callable
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import Settings
from bleuprint.config.parts import part_filter_stats_file, part_folder, part_names
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.steps.shard import AllShards, Shard, TextToIndex, WholeText, Work
from bleuprint.corpus.steps.sharded import INDEX_FOLDER, Step, run_and_print
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.schema import list_known_names
from bleuprint.text.parallel import TextFolder

# A function that sets up a stage for a part: called with the corpus's name and settings, the name
# of the part, and the project's folder.
CreateStep = Callable[[str, Corpus, str, Path], Step]


def corpus_for_part(settings: Settings, corpus_name: str, part: str) -> Corpus:
    """Return the settings of a corpus, after checking that the experiment has a part of a name.

    Args:
        settings: The settings of the experiment.
        corpus_name: The name of the corpus, which may lack the part.
        part: The name of the part.

    Raises:
        UserError: The corpus does not exist, or no corpus has the part.
    """
    names = part_names(settings.corpora)
    if part not in names:
        known_names = list_known_names(part, names)
        raise UserError(f"params.yaml: no corpus has a part {part!r}; {known_names}")
    return settings.corpus(corpus_name)


def download_part(corpus_name: str, corpus: Corpus, part: str, downloads: Downloads) -> None:
    """Download the text of a part.

    Args:
        corpus_name: The name of the corpus.
        corpus: The settings of the corpus. If it does not have such a part, the output is empty.
        part: The name of the part.
        downloads: Where its files are downloaded from.

    Raises:
        UserError: A file is missing, damaged or malformed.
    """
    if part not in corpus.files.parts():
        _write_nothing(corpus_name, part, "download")
        return
    text = _text_of_part("download", corpus_name, corpus, part)
    filter_stats = part_filter_stats_file(corpus_name, part, "download")
    files = corpus.only_text(part).files.only_training()
    download_corpus(corpus_name, files, text, filter_stats, downloads)


def cleaning_of_part(corpus_name: str, corpus: Corpus, part: str, root: Path = Path()) -> Cleaning:
    """Set up the cleaning of a part: its files, and the edits that its settings name.

    Args:
        corpus_name: The name of the corpus.
        corpus: The settings of the corpus.
        part: The name of the part.
        root: The project's folder.
    """
    return Cleaning(
        corpus=_label(corpus_name, part),
        input_text=_text_of_part("download", corpus_name, corpus, part, root),
        output=part_folder(corpus_name, part, "clean", root),
        filter_stats_path=part_filter_stats_file(corpus_name, part, "clean", root),
        edits=corpus.only_text(part).clean,
    )


def filtering_of_part(
    corpus_name: str, corpus: Corpus, part: str, root: Path = Path()
) -> Filtering:
    """Set up the filtering of a part.

    Args:
        corpus_name: The name of the corpus.
        corpus: The settings of the corpus.
        part: The name of the part.
        root: The project's folder.
    """
    settings = corpus.only_text(part)
    return Filtering(
        corpus=_label(corpus_name, part),
        input_text=_text_of_part("clean", corpus_name, corpus, part, root),
        output=part_folder(corpus_name, part, "filter", root),
        filter_stats_path=part_filter_stats_file(corpus_name, part, "filter", root),
        checks=settings.filter,
        tokenize=settings.tokenize,
    )


def run_step_on_part(
    create_step: CreateStep,
    stage: str,
    corpus_name: str,
    corpus: Corpus,
    part: str,
    work: Work,
    workers: int,
) -> None:
    """Run a stage on a part, as a whole or in shards.

    If the corpus does not have the part, the outputs that DVC or Snakemake expects are empty.

    Args:
        create_step: Sets up the stage, such as `cleaning_of_part`.
        stage: The name of the stage without `_part`, such as `clean`.
        corpus_name: The name of the corpus.
        corpus: The settings of the corpus.
        part: The name of the part.
        work: What this process does: index the text, process one shard, gather all shards, or
            process and gather the whole text.
        workers: The number of processes.
    """
    shards_folder = paths.shards_folder(f"{corpus_name}/{part}", f"{stage}_part")
    has_part = part in corpus.files.parts()
    if has_part:
        step = create_step(corpus_name, corpus, part, Path())
        run_and_print(step, shards_folder, work, workers)
        return
    match work:
        # Snakemake expects a folder for the index and for each shard. The folder may exist already,
        # if a user runs the command once more.
        case TextToIndex():
            (shards_folder / INDEX_FOLDER).mkdir(parents=True, exist_ok=True)
        case Shard():
            (shards_folder / str(work)).mkdir(parents=True, exist_ok=True)
        case AllShards() | WholeText():
            _write_nothing(corpus_name, part, stage)


def _write_nothing(corpus_name: str, part: str, stage: str) -> None:
    """Write the outputs of a stage of a part that the corpus does not have.

    The folder is empty, so that it does not change DVC's hash of the folder around it.
    """
    with atomic_folder(part_folder(corpus_name, part, stage)):
        pass
    write_json(part_filter_stats_file(corpus_name, part, stage), {})


def _text_of_part(
    stage: str, corpus_name: str, corpus: Corpus, part: str, root: Path = Path()
) -> TextFolder:
    """Return the text that a stage writes for a part.

    Args:
        stage: The name of the stage without `_part`: download, clean or filter.
        corpus_name: The name of the corpus.
        corpus: The settings of the corpus.
        part: The name of the part.
        root: The project's folder.
    """
    folder = part_folder(corpus_name, part, stage, root)
    return TextFolder(folder, *corpus.only_text(part).languages)


def _label(corpus_name: str, part: str) -> str:
    """Return the name of a part in messages and statistics: `wmt14-en-de, part europarl`."""
    return f"{corpus_name}, part {part}"
