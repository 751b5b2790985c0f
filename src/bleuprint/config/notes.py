"""Notes on params.yaml: settings that are valid but may be unintended, or fail on this machine."""

import re
from collections.abc import Iterator
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.system import System
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import not_a_file
from bleuprint.text.tokenizers import tokenizer_for


def params_notes(settings: Settings) -> Iterator[str]:
    """All notes, one line each."""
    for name, corpus in settings.corpora.items():
        for side, file in corpus.files.sides().items():
            if file.path is not None and not Path(file.path).is_file():
                yield f"corpora.{name}: {side}: {file.path}: {not_a_file(Path(file.path))}"
    if not environment.has_gpu():
        cells = [cell for name in settings.corpora for cell in settings.systems_on(name).items()]
        info = Path("/proc/cpuinfo")
        yield from dict.fromkeys(note for cell in cells for note in precision(*cell, info))


def check_tokenizers(settings: Settings) -> None:
    """Raise UserError if spaCy lacks a language, or packages that it needs for it.

    `load` does not ask it, since loading spaCy takes seconds.
    """
    for name, corpus in settings.pairs().items():
        for language in corpus.languages if corpus.tokenize.name == "spacy" else ():
            try:
                tokenizer_for(language, corpus.tokenize)
            except UserError as error:
                raise UserError(f"params.yaml: corpora.{name}.tokenize: {error}") from None


def precision(name: str, system: System, cpuinfo: Path) -> Iterator[str]:
    """Notes on settings that are slow or inexact on the CPU that Linux describes in `cpuinfo`."""
    known = cpuinfo.read_text() if cpuinfo.exists() else "avx512_bf16 vnni"
    lacking = {"tf32", "float16"} | (
        {"bfloat16"} if not re.search("avx512_bf16|amx_tile", known) else set()
    )
    for part, value in (("train", system.train.precision), ("decode", system.decode.precision)):
        if value in lacking:
            yield f"systems.{name}.{part}.precision {value}: this machine's CPU does not have it"
    if system.decode.precision == "int8" and "vnni" not in known:  # oneDNN and MKL add in 16 bits
        where = f"systems.{name}.decode.precision int8"
        yield f"{where}: sums overflow on this machine's CPU, which lacks VNNI: BLEU will be lower"
