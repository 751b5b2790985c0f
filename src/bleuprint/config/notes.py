"""Notes on params.yaml: settings that are valid but may be unintended, or fail on this machine."""

from collections.abc import Iterator
from pathlib import Path

from bleuprint.config.corpus_files import settings_key
from bleuprint.config.experiment import Settings
from bleuprint.config.setting_place import place_of_setting
from bleuprint.config.system import System
from bleuprint.runtime import environment, processor
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.regular_files import describe_non_file
from bleuprint.runtime.unicode_paths import path_on_disk
from bleuprint.text.tokenizers import tokenizer_for


def params_notes(settings: Settings) -> Iterator[str]:
    """Yield a note for each setting that is valid, but will probably fail on this machine.

    A local file may not exist. Without a GPU, the CPU may lack a number format, such as float16.
    """
    yield from _missing_file_notes(settings)
    if not environment.has_gpu():
        notes = list[str]()
        for corpus_name in settings.corpora:
            for system_name, system in settings.trained_systems_on(corpus_name).items():
                notes += precision_notes(system_name, system)
        # A system has the same note on each of its corpora. A dict has each key only once.
        yield from dict.fromkeys(notes)


def _missing_file_notes(settings: Settings) -> Iterator[str]:
    """Yield a note for each local file of a corpus that does not exist.

    The note begins with the line of params.yaml, or of the file in corpora/, that names the file.
    """
    for corpus_name, corpus in settings.corpora.items():
        for file_name, file in corpus.files.files_by_name().items():
            if file.path is None:
                continue  # The file has a URL, and will be downloaded.
            path = Path(file.path)
            if not path_on_disk(path).is_file():
                keys = settings_key(corpus_name, file_name).split(".")
                yield f"{place_of_setting(keys)}: {file.path}: {describe_non_file(path)}"


def check_tokenizers(settings: Settings) -> None:
    """Check that spaCy can tokenize the languages of each corpus that uses its tokenizers.

    Only the commands `check` and `reproduce` call this function. It is not a part of loading the
    settings, which all stages do, because loading spaCy takes seconds.

    Raises:
        UserError: spaCy does not know a language, or lacks a package for it.
    """
    for corpus_name, corpus in settings.language_pairs().items():
        if corpus.tokenize.name != "spacy":
            continue
        for language in corpus.languages:
            try:
                # Loaded only to see whether this raises an error.
                tokenizer_for(language, corpus.tokenize)
            except UserError as error:
                raise UserError(f"params.yaml: corpora.{corpus_name}.tokenize: {error}") from None


def precision_notes(name: str, system: System) -> Iterator[str]:
    """Yield a note for each number format of a system, such as float16, that this CPU lacks.

    Args:
        name: The name of the system, for the notes.
        system: The settings of the system, which have a format for training and one for decoding.
    """
    # The formats that only GPUs have. Some CPUs have bfloat16.
    missing_formats = {"tf32", "float16"}
    if not processor.THIS.has_bfloat16:
        missing_formats.add("bfloat16")
    precision_by_section = {"train": system.train.precision, "decode": system.decode.precision}
    for section, precision in precision_by_section.items():
        if precision in missing_formats:
            setting = f"systems.{name}.{section}.precision"
            yield f"{setting} is {precision}, which this machine's CPU does not have"
