"""Notes on params.yaml: settings that are valid but may be unintended, or fail on this machine."""

from collections.abc import Iterator
from pathlib import Path

from bleuprint.config.corpus_files import settings_key
from bleuprint.config.experiment import Settings
from bleuprint.config.setting_place import place_of_setting
from bleuprint.config.system import System
from bleuprint.runtime import environment, processor
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import describe_non_file, path_on_disk
from bleuprint.text.tokenizers import tokenizer_for


def params_notes(settings: Settings) -> Iterator[str]:
    """All notes, one line each."""
    for name, corpus in settings.corpora.items():
        for side, file in corpus.files.files_by_name().items():
            if file.path is not None and not path_on_disk(Path(file.path)).is_file():
                place = place_of_setting(settings_key(name, side).split("."))
                yield f"{place}: {file.path}: {describe_non_file(Path(file.path))}"
    if not environment.has_gpu():
        runs = [
            run for name in settings.corpora for run in settings.trained_systems_on(name).items()
        ]
        yield from dict.fromkeys(note for run in runs for note in precision_notes(*run))


def check_tokenizers(settings: Settings) -> None:
    """Raise UserError if spaCy lacks a language, or packages that it needs for it.

    `load_settings` does not ask it, since loading spaCy takes seconds.
    """
    for name, corpus in settings.language_pairs().items():
        for language in corpus.languages if corpus.tokenize.name == "spacy" else ():
            try:
                tokenizer_for(language, corpus.tokenize)
            except UserError as error:
                raise UserError(f"params.yaml: corpora.{name}.tokenize: {error}") from None


def precision_notes(name: str, system: System) -> Iterator[str]:
    """Yield notes on number formats that this machine's CPU has to emulate."""
    lacking = {"tf32", "float16"}
    if not processor.THIS.has_bfloat16:
        lacking.add("bfloat16")
    for part, value in (("train", system.train.precision), ("decode", system.decode.precision)):
        if value in lacking:
            yield f"systems.{name}.{part}.precision {value}: this machine's CPU does not have it"
