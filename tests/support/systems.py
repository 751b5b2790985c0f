"""Settings of small systems, of which each test changes those that it is about."""

import dataclasses

from bleuprint.config.optimization import InverseSqrt, LrSchedule, Optimizer
from bleuprint.config.system import (
    Average,
    Decode,
    Dropout,
    Keep,
    LengthPenalty,
    Model,
    System,
    Train,
)

NO_DROPOUT = Dropout(embedding=0.0, residual=0.0, attention=0.0, activation=0.0)

MODEL = Model(
    encoder_layers=1,
    decoder_layers=1,
    d_model=32,
    d_ff=64,
    heads=4,
    d_k=8,
    d_v=8,
    norm="post",
    normalization="layer",
    positional_encoding="sinusoidal",
    scale_embeddings=True,
    scale_attention=True,
    max_positions=256,
    activation="relu",
    dropout=NO_DROPOUT,
    layer_drop=0.0,
    bias=True,
    output_bias=False,
    tie_embeddings="all",
    init="scaled",
)

TRAIN = Train(
    tokens_per_update=200,
    max_tokens=70,
    optimizer=Optimizer(name="adam", betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0),
    lr_schedule=LrSchedule(
        inverse_sqrt=InverseSqrt(lr=0.005, warmup_updates=20, warmup_init_lr=0.0)
    ),
    clip_norm=1.0,
    label_smoothing=0.1,
    label_smoothing_target="uniform",
    bpe_dropout=0.0,
    precision="float32",
    compile=False,
    validation_metric="loss",
    validate_every=25,
    checkpoint_every=10,
    keep=Keep(last=3, best=0, every=0),
    max_updates=50,
)

DECODE = Decode(
    beam=2,
    length_penalty=LengthPenalty("gnmt", alpha=0.6),
    max_len_a=1.0,
    max_len_b=10,
    min_length=0,
    no_repeat_ngram=0,
    allow_unk=True,
    engine="pytorch",
    precision="float32",
)

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
    return dataclasses.replace(settings, cells={**settings.cells, **_cells(settings, systems)})


def only_systems(settings, systems):
    """The settings with these systems alone."""
    return dataclasses.replace(settings, cells=_cells(settings, systems))


def _cells(settings, systems):
    return {name: dict.fromkeys(settings.corpora, system) for name, system in systems.items()}
