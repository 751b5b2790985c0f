"""Settings by their former names, which params.yaml files written for earlier versions have."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bleuprint.rules import CHECKS, EDITS
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import line_of

_TEXT = "corpora.*.files.(train|valid|tests.*).*"
_SCHEDULE = "systems.*.train.(schedule|lr_schedule)"

# The former key, in its place, and its name now; * is any name.
KEYS = {
    "corpora.*.about": "license_and_citation",
    "corpora.*.(about|license_and_citation).*.licence": "license",
    f"{_TEXT}.about": "license_and_citation",
    f"{_TEXT}.(source|target|both).also_at": "mirrors",
    f"{_TEXT}.(source|target|both).member": "archive_member",
    "corpora.*.clean.unprinted": "non_printing",
    "corpora.*.dedup.overlap": "decontaminate",
    "corpora.*.filter.language": "language_id",
    "corpora.*.tokenize.by": "name",
    "corpora.*.vocabulary.bpe.merges": "num_merges",
    "corpora.*.vocabulary.bpe.engine": "learner",
    "systems.*.model.positions": "positional_encoding",
    "systems.*.model.max_length": "max_positions",
    "systems.*.model.tie": "tie_embeddings",
    "systems.*.model.initialisation": "init",
    "systems.*.train.batch_tokens": "max_tokens",
    "systems.*.train.updates": "max_updates",
    "systems.*.train.epochs": "max_epochs",
    "systems.*.train.measure": "validation_metric",
    "systems.*.train.smoothing_over": "label_smoothing_target",
    "systems.*.train.optimizer.by": "name",
    "systems.*.train.optimizer.epsilon": "eps",
    "systems.*.train.schedule": "lr_schedule",
    f"{_SCHEDULE}.inverse_square_root": "inverse_sqrt",
    f"{_SCHEDULE}.(inverse_square_root|inverse_sqrt|cosine).peak": "lr",
    f"{_SCHEDULE}.(inverse_square_root|inverse_sqrt|cosine|noam).warmup": "warmup_updates",
    f"{_SCHEDULE}.(inverse_square_root|inverse_sqrt).start": "warmup_init_lr",
    f"{_SCHEDULE}.constant.rate": "lr",
    f"{_SCHEDULE}.cosine.updates": "max_updates",
    f"{_SCHEDULE}.cosine.end": "min_lr",
    "systems.*.decode.alpha": "length_penalty.alpha",
    "systems.*.decode.penalty": "length_penalty.kind",
    "systems.*.decode.max_ratio": "max_len_a",
    "systems.*.decode.max_extra": "max_len_b",
    "systems.*.decode.no_repeat": "no_repeat_ngram",
    "systems.*.decode.unknown": "allow_unk",
}

# The same for values: KEY: VALUE.
VALUES = {
    "corpora.*.dedup.(overlap|decontaminate): folded": "normalized",
    "systems.*.train.(smoothing_over|label_smoothing_target): vocabulary": "uniform",
    "systems.*.train.(smoothing_over|label_smoothing_target): others": "non_target",
}


def _compiled(table: Mapping[str, str]) -> dict[re.Pattern[str], str]:
    return {
        re.compile(old.replace(".", r"\.").replace("*", "[^.]+")): new for old, new in table.items()
    }


_KEYS, _VALUES = _compiled(KEYS), _compiled(VALUES)


def refusal(document: Any, path: Path) -> UserError | None:
    """An error that names every former name in a document, with its lines; None without any."""
    former = list(_former("", 1, document))
    if not former:
        return None
    (line, key, _, new), *others = former
    text = f"{path}:{line}: {key} renamed to {new}"
    if not others:
        return UserError(text)
    lines: dict[str, set[int]] = {}  # merged (<<) settings occur several times
    for line, _, old, new in former:
        lines.setdefault(f"{old} to {new}", set()).add(line)
    every = (f"{names} ({', '.join(map(str, sorted(at)))})" for names, at in lines.items())
    return UserError(f"{text}; all of them, with their lines: {', '.join(every)}")


def _former(key: str, line: int, value: Any) -> Iterator[tuple[int, str, str, str]]:
    """Former names in a value: line, place, former name and new name."""
    if not isinstance(value, Mapping):
        written = f"{key}: {value}" if isinstance(value, str) else ""
        for pattern, new in _VALUES.items():
            if pattern.fullmatch(written):
                yield line, written, str(value), new
        return
    for name, inner in value.items():
        inner_key, inner_line = f"{key}.{name}".lstrip("."), line_of(value, name) or line
        for pattern, new in _KEYS.items():
            if pattern.fullmatch(inner_key) and name not in (*EDITS, *CHECKS):
                yield inner_line, f"{inner_key}:", str(name), new
        yield from _former(inner_key, inner_line, inner)
