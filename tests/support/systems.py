"""Settings of small systems, of which each test changes those that it is about."""

import dataclasses

from bleuprint.config.optimization import InverseSqrt, LrSchedule
from bleuprint.config.system import Average, Decode, Dropout, Model, System, Train

NO_DROPOUT = Dropout(embedding=0.0, residual=0.0)

MODEL = Model(
    encoder_layers=1,
    decoder_layers=1,
    d_model=32,
    d_ff=64,
    heads=4,
    max_positions=256,
    dropout=NO_DROPOUT,
)

TRAIN = Train(
    tokens_per_update=200,
    max_tokens=70,
    lr_schedule=LrSchedule(inverse_sqrt=InverseSqrt(lr=0.005, warmup_updates=20)),
    clip_norm=1.0,
    compile=False,
    validate_interval=25,
    save_interval=10,
    keep_last=3,
    max_updates=50,
)

DECODE = Decode(beam=2, max_len_b=10)

SYSTEM = System(model=MODEL, train=TRAIN, average=Average(last=1), decode=DECODE)


def model(**changes):
    """Return MODEL with some settings changed.

    Args:
        changes: The settings. A number for `dropout` is the probability for embeddings and
            residuals.
    """
    dropout = changes.get("dropout")
    if isinstance(dropout, float):
        changes["dropout"] = dataclasses.replace(NO_DROPOUT, embedding=dropout, residual=dropout)
    return dataclasses.replace(MODEL, **changes)


def train(**changes):
    """Return TRAIN with some settings changed."""
    return dataclasses.replace(TRAIN, **changes)


def decode(**changes):
    """Return DECODE with some settings changed.

    Args:
        changes: The settings; `kind` and `alpha` are settings of the length penalty.
    """
    penalty_changes = {}
    for name in ("kind", "alpha"):
        if name in changes:
            penalty_changes[name] = changes.pop(name)
    if penalty_changes:
        changes["length_penalty"] = dataclasses.replace(DECODE.length_penalty, **penalty_changes)
    return dataclasses.replace(DECODE, **changes)


def system(**changes):
    """Return SYSTEM with some parts changed, such as `model` or `train`."""
    return dataclasses.replace(SYSTEM, **changes)


def as_yaml(settings):
    """Return settings as params.yaml contains them; settings without a value are omitted."""
    if dataclasses.is_dataclass(settings):
        settings = dataclasses.asdict(settings)
    if isinstance(settings, dict):
        return {key: as_yaml(value) for key, value in settings.items() if value is not None}
    if isinstance(settings, list | tuple):
        return [as_yaml(value) for value in settings]
    return settings


def with_systems(settings, systems):
    """Return settings with more systems, which run on all corpora."""
    return dataclasses.replace(settings, runs={**settings.runs, **_runs(settings, systems)})


def only_systems(settings, systems):
    """Return settings with these systems instead of others; they run on all corpora."""
    return dataclasses.replace(settings, runs=_runs(settings, systems))


def _runs(settings, systems):
    """Return the settings of each system on each corpus."""
    return {name: dict.fromkeys(settings.corpora, system) for name, system in systems.items()}
