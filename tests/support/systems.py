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
    """MODEL, but for these; a number for `dropout` is that of embeddings and residuals."""
    return dataclasses.replace(MODEL, **_dropout(changes))


def train(**changes):
    """TRAIN, but for these."""
    return dataclasses.replace(TRAIN, **changes)


def decode(**changes):
    """DECODE with these changes; `kind` and `alpha` are those of the length penalty."""
    penalty = {name: changes.pop(name) for name in ("kind", "alpha") if name in changes}
    if penalty:
        changes["length_penalty"] = dataclasses.replace(DECODE.length_penalty, **penalty)
    return dataclasses.replace(DECODE, **changes)


def system(**changes):
    """SYSTEM, but for these parts."""
    return dataclasses.replace(SYSTEM, **changes)


def as_yaml(settings):
    """Settings as params.yaml would hold them: what is not given is not there."""
    if isinstance(settings, dict):
        return {key: as_yaml(value) for key, value in settings.items() if value is not None}
    if isinstance(settings, list | tuple):
        return list(map(as_yaml, settings))
    return as_yaml(dataclasses.asdict(settings)) if dataclasses.is_dataclass(settings) else settings


def _dropout(changes):
    if isinstance(share := changes.get("dropout"), float):
        changes["dropout"] = dataclasses.replace(NO_DROPOUT, embedding=share, residual=share)
    return changes


def with_systems(settings, systems):
    """The settings with these systems, the same on all corpora."""
    return dataclasses.replace(settings, runs={**settings.runs, **_runs(settings, systems)})


def only_systems(settings, systems):
    """The settings with these systems alone."""
    return dataclasses.replace(settings, runs=_runs(settings, systems))


def _runs(settings, systems):
    return {name: dict.fromkeys(settings.corpora, system) for name, system in systems.items()}
