"""The settings of a system, a row of the table: a model, how it is trained, how it translates."""

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from bleuprint.runtime.schema import Count, Range, Share

Above0 = Annotated[float, Range(0, open_low=True)]
AtLeast0 = Annotated[float, Range(0)]

# More hypotheses than anybody keeps.
WIDEST = 1000


@dataclass(frozen=True)
class Dropout:
    """Shares of numbers set to 0: of embeddings with their positions, of what each sublayer adds
    to the residual stream, of attention weights, of the feed-forward networks' inner layers.
    """

    embedding: Share
    residual: Share
    attention: Share
    activation: Share


@dataclass(frozen=True)
class Model:
    """The Transformer's shape, in the paper's names.

    `d_k`, `d_v`: sizes of each head's queries and keys, and of its values. `max_length`: the most
    positions a sentence may have, its EOS (or BOS) counted. `layer_drop`: the share of layers left
    out, at random, in training. `bias`: whether linear layers have one; `output_bias`: whether the
    projection to the vocabulary has. `initialisation`: Xavier uniform throughout (xavier), or for
    the layers only, with embeddings normal of deviation d_model^-0.5 (scaled), or those with layers
    normal of deviation (2 / (5 d_model))^0.5 (small; Nguyen and Salazar 2019), with which deep
    post-norm models train.
    """

    encoder_layers: Count
    decoder_layers: Count
    d_model: Count
    d_ff: Count
    heads: Count
    d_k: Count
    d_v: Count
    norm: Literal["post", "pre"]
    positions: Literal["sinusoidal", "learned"]
    max_length: Annotated[int, Range(2)]
    activation: Literal["relu", "gelu"]
    dropout: Dropout
    layer_drop: Share
    bias: bool
    output_bias: bool
    tie: Literal["all", "decoder", "none"]
    initialisation: Literal["xavier", "scaled", "small"]

    def __post_init__(self) -> None:
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"d_model {self.d_model} is odd: sinusoidal positions come in pairs")


@dataclass(frozen=True)
class Optimizer:
    """Adam (Kingma and Ba 2015), `weight_decay` added to the gradient, or AdamW (Loshchilov and
    Hutter 2019), where weights shrink by themselves, by learning rate times `weight_decay`.
    """

    by: Literal["adam", "adamw"]
    betas: tuple[Share, Share]
    epsilon: Above0
    weight_decay: AtLeast0


@dataclass(frozen=True)
class InverseSquareRoot:
    """Linear from `start` to `peak` over `warmup` updates, then down with their square root."""

    peak: Above0
    warmup: Count
    start: AtLeast0

    def __post_init__(self) -> None:
        if self.start > self.peak:
            raise ValueError(f"start {self.start} is above peak {self.peak}")


@dataclass(frozen=True)
class Noam:
    """The paper's: `factor` * d_model^-0.5 * min(update^-0.5, update * warmup^-1.5)."""

    factor: Above0
    warmup: Count


@dataclass(frozen=True)
class Constant:
    """The same learning rate throughout."""

    rate: Above0


@dataclass(frozen=True)
class Cosine:
    """Linear from 0 to `peak` over `warmup` updates, then half a cosine to `end` at `updates`."""

    peak: Above0
    warmup: Annotated[int, Range(0)]
    updates: Count
    end: AtLeast0

    def __post_init__(self) -> None:
        if self.warmup >= self.updates:
            raise ValueError(f"warmup {self.warmup} leaves nothing of updates {self.updates}")
        if self.end > self.peak:
            raise ValueError(f"end {self.end} is above peak {self.peak}")


@dataclass(frozen=True)
class Schedule:
    """How the learning rate goes: one of these."""

    inverse_square_root: InverseSquareRoot | None = None
    noam: Noam | None = None
    constant: Constant | None = None
    cosine: Cosine | None = None

    def __post_init__(self) -> None:
        _check_one(self)


@dataclass(frozen=True)
class Keep:
    """Which checkpoints stay: the `last` so many, the `best` so many, and each `every`-th update's.

    0: none. Best are those of the lowest validation loss or the highest BLEU (`train.measure`).
    """

    last: Count
    best: Annotated[int, Range(0)]
    every: Annotated[int, Range(0)]


@dataclass(frozen=True)
class Train:
    """How a model is trained.

    `tokens_per_update` counts target tokens over all processes; an update is made of batches
    of at most `batch_tokens` tokens, padding included, which the processes share out.
    Training stops after so many `updates` or `epochs`, or when so many validations in a row
    (`patience`) have not bettered the best `measure`; at whatever is given and comes first.
    `smoothing_over`: what the smoothed share of the right word goes to: all V units of the
    vocabulary, or the V - 2 that are neither it nor padding (others).
    `bpe_dropout`: the share of merges left out, at random, each time a sentence is trained on;
    batches and updates are planned by the lengths without it, and hold more tokens with it (about
    a sixth at 0.1).
    `precision`, `compile`: of products, in matrices: float32, on GPUs also rounded to tf32 or
    bfloat16; and whether torch compiles the model, which takes minutes and pays on GPUs.
    """

    tokens_per_update: Count
    batch_tokens: Count
    optimizer: Optimizer
    schedule: Schedule
    clip_norm: AtLeast0
    label_smoothing: Share
    smoothing_over: Literal["vocabulary", "others"]
    bpe_dropout: Share
    precision: Literal["float32", "tf32", "bfloat16"]
    compile: bool
    measure: Literal["loss", "bleu"]
    validate_every: Count
    checkpoint_every: Count
    keep: Keep
    updates: Count | None = None
    epochs: Count | None = None
    patience: Count | None = None

    def __post_init__(self) -> None:
        if self.batch_tokens > self.tokens_per_update:
            raise ValueError(
                f"batch_tokens {self.batch_tokens} is beyond tokens_per_update "
                f"{self.tokens_per_update}: updates would be larger than they say"
            )
        if self.updates is None and self.epochs is None and self.patience is None:
            raise ValueError("needs updates, epochs or patience, or it would never stop")
        for name, updates in (("keep.every", self.keep.every), ("validate_every", self.keep.best)):
            rhythm = self.keep.every if name == "keep.every" else self.validate_every
            if updates and rhythm % self.checkpoint_every:
                raise ValueError(
                    f"{name} {rhythm} is no multiple of checkpoint_every {self.checkpoint_every}: "
                    "there would be no checkpoint to keep"
                )


@dataclass(frozen=True)
class Average:
    """Which checkpoints are averaged: the `last` so many, the `best` so many, or all that are kept
    from one of `updates` to the other. One of these.
    """

    last: Count | None = None
    best: Count | None = None
    updates: tuple[Count, Count] | None = None

    def __post_init__(self) -> None:
        _check_one(self)
        if self.updates and self.updates[0] > self.updates[1]:
            raise ValueError(f"updates {list(self.updates)}: from the first to the last")


@dataclass(frozen=True)
class Decode:
    """Beam search, of `beam` hypotheses; see search.py.

    `penalty`: what log-probabilities are divided by, ((5 + length) / 6)^alpha (gnmt) or
    length^alpha (length). An output has at most `max_ratio` times the units of its source and
    `max_extra` more, and at least `min_length`, ends not counted. `no_repeat`: no run of so many
    units comes twice in it (0: any may). `unknown`: whether it may hold the unknown unit.
    `engine`, `precision`: what searches, with numbers of which kind; int8 is CTranslate2's alone.
    """

    beam: Annotated[int, Range(1, WIDEST)]
    alpha: Annotated[float, Range(0, 10)]
    penalty: Literal["gnmt", "length"]
    max_ratio: Annotated[float, Range(0, 1000)]
    max_extra: Annotated[int, Range(0, 100_000)]
    min_length: Annotated[int, Range(0, 100_000)]
    no_repeat: Annotated[int, Range(0, 100_000)]
    unknown: bool
    engine: Literal["pytorch", "ctranslate2"]
    precision: Literal["float32", "int8"]

    def __post_init__(self) -> None:
        if (self.engine, self.precision) == ("pytorch", "int8"):
            raise ValueError("precision int8 needs engine ctranslate2")
        for name in ("min_length", "no_repeat"):
            if self.engine == "ctranslate2" and getattr(self, name):
                # it forbids words before it computes probabilities, and so has others than ours
                raise ValueError(f"{name} {getattr(self, name)} needs engine pytorch")


@dataclass(frozen=True)
class System:
    """One row of the table."""

    model: Model
    train: Train
    average: Average
    decode: Decode

    def __post_init__(self) -> None:
        model, keep, train = self.model, self.train.keep, self.train
        if self.decode.engine == "ctranslate2" and not (
            model.d_k * model.heads == model.d_v * model.heads == model.d_model
        ):
            raise ValueError(
                f"decode.engine ctranslate2 takes d_k and d_v of d_model / heads only, not "
                f"{model.d_k} and {model.d_v} of {model.d_model} / {model.heads}"
            )
        for name, wanted, kept, every in (
            ("last", self.average.last, keep.last, train.checkpoint_every),
            ("best", self.average.best, keep.best, train.validate_every),
        ):
            if train.updates is not None:
                kept = min(kept, -(-train.updates // every))
            if wanted is not None and wanted > kept:
                raise ValueError(f"average.{name} {wanted}: training keeps {kept} checkpoints")
        if self.average.updates:
            self._check_interval(*self.average.updates)

    def _check_interval(self, first: int, last: int) -> None:
        """Raise ValueError if training is sure to keep no checkpoint from `first` to `last`."""
        keep, end, every = self.train.keep, self.train.updates, self.train.checkpoint_every
        if end is not None and end < first:
            raise ValueError(f"average.updates begins at {first}: training ends at {end}")
        milestones = keep.every and last // keep.every * keep.every >= first
        if milestones or keep.best or end is None or self.train.epochs or self.train.patience:
            return  # there is one, or nobody knows where training will end and which are best
        rounds = -(-end // every)
        kept = [min(end, n * every) for n in range(max(1, rounds - keep.last + 1), rounds + 1)]
        if not any(first <= update <= last for update in kept):
            raise ValueError(
                f"average.updates [{first}, {last}]: training keeps none of these, but {kept}: "
                "raise keep.last, or set keep.every"
            )


def _check_one(settings: Any) -> None:
    """Raise ValueError unless just one of the fields is given."""
    names = [field.name for field in fields(settings)]
    if sum(getattr(settings, name) is not None for name in names) != 1:
        raise ValueError(f"needs one of {', '.join(names)}")
