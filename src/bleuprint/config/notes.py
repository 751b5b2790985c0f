"""Notes on params.yaml: settings that are valid but may be unintended, or fail on this machine."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from bleuprint.config.experiment import Settings
from bleuprint.config.system import System
from bleuprint.runtime import environment
from bleuprint.runtime.code import git
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import line_of, load_yaml
from bleuprint.text.tokenizers import tokenizer_for


def notes(settings: Settings, path: Path = Path("params.yaml")) -> Iterator[str]:
    """All notes, one line each."""
    yield from lost_anchors(path)
    for name, corpus in settings.corpora.items():
        for side, place in corpus.files.outside(Path(), environment.root()).items():
            yield f"corpora.{name}: {side} is read from outside the project: {place}"
        for side, file in corpus.files.sides().items():
            if file.path is not None and not Path(file.path).is_file():
                yield f"corpora.{name}: {side}: {file.path}: no such file"
        limits = [getattr(rule, "max", 0) for rule in corpus.filter if rule.name() == "length"]
        for row, system in settings.systems_on(name).items():
            most = system.model.max_positions
            if any(most <= limit for limit in limits):
                yield (
                    f"systems.{row}.model.max_positions is {most}, but filter.length of {name} "
                    f"keeps sentences of up to {limits[0]} words: one of {most} ends the training"
                )
    cells = [cell for name in settings.corpora for cell in settings.systems_on(name).items()]
    available = psutil.virtual_memory().total
    yield from dict.fromkeys(note for cell in cells for note in memory(*cell, available, "memory"))
    if not environment.has_gpu():
        info = Path("/proc/cpuinfo")
        yield from dict.fromkeys(note for cell in cells for note in precision(*cell, info))


def check_tokenizers(settings: Settings, path: Path = Path("params.yaml")) -> None:
    """Raise UserError if spaCy lacks a language, or packages that it needs for it.

    `load` does not ask it, since loading spaCy takes seconds.
    """
    for name, corpus in settings.corpora.items():
        for language in (corpus.source, corpus.target) if corpus.tokenize.name == "spacy" else ():
            try:
                tokenizer_for(language, corpus.tokenize)
            except UserError as error:
                line = line_of(load_yaml(path)["corpora"][name], "tokenize")
                raise UserError(f"{path}:{line}: corpora.{name}: {error}") from None


def memory(name: str, system: System, available: int, what: str) -> Iterator[str]:
    """A note if training cannot fit into `available` bytes of `what`."""
    weights, train = system.model.layer_weights, system.train
    # of each weight: itself, its gradient, Adam's two moments or SGD's one, the moving average
    numbers = 2 + (1 if train.optimizer.name == "sgd" else 2) + (train.ema is not None)
    if (needed := weights * 4 * numbers) > available:
        yield (
            f"systems.{name} has {weights:.2g} weights in its layers: training takes more than "
            f"{needed / 1e9:,.0f} GB, and this machine has {available / 1e9:,.0f} GB of {what}"
        )


def precision(name: str, system: System, cpuinfo: Path) -> Iterator[str]:
    """Notes on what pays off on other devices than the CPU that Linux describes in `cpuinfo`."""
    known = cpuinfo.read_text() if cpuinfo.exists() else "avx512_bf16"
    lacking = {"tf32"} | ({"bfloat16"} if not re.search("avx512_bf16|amx_tile", known) else set())
    for part, value in (("train", system.train.precision), ("decode", system.decode.precision)):
        if value in lacking:
            yield f"systems.{name}.{part}.precision {value}: this machine's CPU does not have it"
    if system.train.compile:
        yield f"systems.{name}.train.compile: takes minutes, which do not pay off on CPUs"


def lost_anchors(path: Path = Path("params.yaml")) -> Iterator[str]:
    """A note if an edit no longer reaches what merges it, as it did in git's last commit.

    dvc exp run -S writes what is merged out, beside the merge key, and drops anchors without alias.
    """
    if environment.is_copy() or not path.exists():
        return
    committed = git(path.absolute().parent, "show", f"HEAD:./{path.name}").decode()
    text = path.read_text(encoding="utf-8")
    kept = _anchors(text)
    lost = [anchor for anchor in _anchors(committed) if anchor not in kept]
    written_out = _vain_merges(text) > _vain_merges(committed)
    recipes = path.absolute().parent.glob("recipes/*.yaml")
    if not (written_out or (lost and not kept)) or text in (
        file.read_text("utf-8") for file in recipes
    ):
        return
    what = f"anchors of the last commit are gone ({', '.join(lost)})"
    yield (
        f"{path}: {what if lost else 'what is merged (<<) is also written out'}, as after dvc exp "
        "run -S: an edit no longer reaches what was merged from them; "
        f"git checkout {path} brings them back, without edits since"
    )


def _anchors(text: str) -> list[str]:
    return re.findall(r"(?m)^[^#\n]*?[:-] (&\S+)", text)


def _vain_merges(text: str) -> int:
    """The mappings of a YAML text that have all single values of one that they merge themselves."""
    try:
        return _count_vain_merges(YAML(typ="rt").load(text))
    except YAMLError:  # of a commit
        return 0


def _count_vain_merges(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_count_vain_merges, value))
    if not isinstance(value, CommentedMap):
        return 0
    own = set(value.lc.data or ())
    merged = (
        {name for name, entry in base.items() if not isinstance(entry, dict | list)}
        for base in value.merge
    )
    vain = any(names and names <= own for names in merged)
    return vain + sum(_count_vain_merges(value[name]) for name in own)
