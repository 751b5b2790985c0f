"""The settings of a system, a row of the table: its model, training, averaging and decoding."""

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

from annotated_types import Ge, Interval

from bleuprint.config.init_from import InitFrom
from bleuprint.config.optimization import AtLeast0, LrSchedule, Noam, Optimizer, Updates, check_one
from bleuprint.runtime.schema import Count, Share

Layers = Annotated[int, Interval(ge=1, le=10_000)]
Width = Annotated[int, Interval(ge=1, le=1_000_000)]
Tokens = Annotated[int, Interval(ge=1, le=10**9)]
# The largest beam.
MAX_BEAM = 1000
# Settings of a model that decide no weight's shape or use; positions: unless they are learned.
_FREE = {"dropout", "layer_drop", "init", "max_positions"}


@dataclass(frozen=True)
class Dropout:
    """Dropout probabilities: of embeddings with their positions, of what each sublayer adds to the
    residual stream, of attention weights, of the feed-forward networks' inner activations.
    """

    embedding: Share = 0.1
    residual: Share = 0.1
    attention: Share = 0.0
    activation: Share = 0.0


@dataclass(frozen=True)
class Model:
    """The Transformer's shape, in the paper's names.

    `d_k`, `d_v`: the size of each head's queries and keys, and of its values, by default d_model /
    heads. `max_positions`: the most tokens of a sentence, EOS (or BOS) included. `layer_drop`: the
    probability with which training skips a layer. `bias`: whether linear layers have one;
    `output_bias`: whether the projection to the vocabulary has one. `tie_embeddings`: which of
    source embedding, target embedding and output projection share one matrix. `init`: Xavier
    uniform throughout (xavier); Xavier uniform for layers, with embeddings of standard deviation
    d_model^-0.5 (scaled); or the same embeddings with layers of standard deviation (2 / (5
    d_model))^0.5 (small; Nguyen and Salazar 2019), with which deep post-norm models train.
    `positional_encoding`: sinusoidal or learned, added to the embeddings; rotary (Su et al. 2021),
    of the queries and keys of self-attention; or none. `scale_embeddings`: by d_model^0.5;
    `scale_attention`: the products of queries and keys by d_k^-0.5. `normalization`: LayerNorm, or
    RMSNorm (Zhang and Sennrich 2019). `activation`: of feed-forward networks; swiglu (Shazeer 2020)
    has three matrices instead of two: two thirds of `d_ff` keep the number of parameters.
    """

    encoder_layers: Layers = 6
    decoder_layers: Layers = 6
    d_model: Width = 512
    d_ff: Width = 2048
    heads: Annotated[int, Interval(ge=1, le=10_000)] = 8
    d_k: Width = 0
    d_v: Width = 0
    norm: Literal["post", "pre"] = "post"
    normalization: Literal["layer", "rms"] = "layer"
    positional_encoding: Literal["sinusoidal", "learned", "rotary", "none"] = "sinusoidal"
    scale_embeddings: bool = True
    scale_attention: bool = True
    max_positions: Annotated[int, Interval(ge=2, le=1_000_000)] = 1024
    activation: Literal["relu", "gelu", "swiglu"] = "relu"
    dropout: Dropout = Dropout()
    layer_drop: Share = 0.0
    bias: bool = True
    output_bias: bool = False
    tie_embeddings: Literal["all", "decoder", "none"] = "all"
    init: Literal["xavier", "scaled", "small"] = "scaled"

    def __post_init__(self) -> None:
        for name in ("d_k", "d_v"):
            if not getattr(self, name):  # left out
                if self.d_model % self.heads:
                    sizes = f"d_model {self.d_model} is no multiple of heads {self.heads}"
                    raise ValueError(f"{sizes}: give {name}")
                object.__setattr__(self, name, self.d_model // self.heads)
        if self.positional_encoding == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"d_model {self.d_model} is odd: sinusoidal encodings need it even")
        if self.positional_encoding == "rotary" and self.d_k % 2:
            raise ValueError(f"d_k {self.d_k} is odd: rotary encodings turn pairs of dimensions")

    @property
    def feed_forward_weights(self) -> int:
        """The weights of a feed-forward network's matrices."""
        return (3 if self.activation == "swiglu" else 2) * self.d_model * self.d_ff

    def difference(self, parent: "Model") -> str | None:
        """Return the first setting by which the weights of `parent` do not fit; None if they do."""
        free = _FREE
        if self.positional_encoding == "learned":
            free = _FREE - {"max_positions"}  # a weight for each position
        for setting in fields(self):
            own = getattr(self, setting.name)
            of_parent = getattr(parent, setting.name)
            if setting.name not in free and own != of_parent:
                return (
                    f"model.{setting.name} is {own}, but {of_parent} in the model that the "
                    "training starts from"
                )
        return None


@dataclass(frozen=True)
class Train:
    """How a model is trained.

    An update has `tokens_per_update` target tokens or `sentences_per_update` pairs, over all
    processes: exactly one of the two is given. `max_tokens`: the size of a batch, padding
    included, which memory limits; the batches of an update are divided among the processes. With
    `tokens_per_update` it also decides which sentences an update has, since an update takes whole
    batches; with `sentences_per_update` it does not.
    Training ends after `max_updates` or `max_epochs`, or after `patience` validations in a row
    that did not improve `validation_metric`; the first condition that holds counts.
    `label_smoothing_target`: what receives the smoothed probability: all V tokens of the
    vocabulary (uniform), or the V - 2 that are neither the label nor padding (non_target).
    `bpe_dropout`: the probability of leaving out a merge, drawn each time a sentence is read;
    batches and updates are planned by the lengths without it, and hold more tokens with it (about
    a sixth at 0.1).
    `precision`: of matrix products: float32; bfloat16 (also of activations), on GPUs and CPUs that
    have it; on GPUs tf32, or float16 (as bfloat16, with a scaled loss), for those without bfloat16.
    `compile`: torch.compile, which takes minutes at the start; by default on GPUs that it knows.
    `init_from`: the weights that training starts from, instead of random ones.
    `keep_last`, `keep_best`: how many of the newest and of the best checkpoints are kept;
    best: of the lowest validation loss or the highest BLEU (`validation_metric`). `keep_interval`:
    checkpoints at its multiples are kept, too (0: none).
    `ema`: the decay of an exponential moving average of the weights, kept for `average`: after
    update n, the mean of the weights after updates i = 1 to n, weighted by ema^(n - i).
    """

    max_tokens: Tokens
    optimizer: Optimizer = field(default_factory=Optimizer)
    lr_schedule: LrSchedule = field(default_factory=lambda: LrSchedule(noam=Noam()))
    clip_norm: AtLeast0 = 0.0
    label_smoothing: Share = 0.1
    label_smoothing_target: Literal["uniform", "non_target"] = "uniform"
    bpe_dropout: Share = 0.0
    precision: Literal["float32", "tf32", "bfloat16", "float16"] = "float32"
    compile: bool | None = None
    validation_metric: Literal["loss", "bleu"] = "loss"
    validate_interval: Updates = 1000
    save_interval: Updates = 1000
    keep_last: Count = 5
    keep_best: Annotated[int, Ge(0)] = 0
    keep_interval: Annotated[int, Ge(0)] = 0
    tokens_per_update: Tokens | None = None
    sentences_per_update: Tokens | None = None
    ema: Share | None = None
    max_updates: Updates | None = None
    max_epochs: Updates | None = None
    patience: Count | None = None
    init_from: InitFrom | None = None

    def __post_init__(self) -> None:
        check_one(self, "tokens_per_update", "sentences_per_update")
        if (most := self.tokens_per_update) is not None and self.max_tokens > most:
            raise ValueError(f"max_tokens {self.max_tokens} is above tokens_per_update {most}")
        if self.max_updates is None and self.max_epochs is None and self.patience is None:
            raise ValueError("needs max_updates, max_epochs or patience, or it would never end")
        for name, count, every in (
            ("keep_interval", self.keep_interval, self.keep_interval),
            ("validate_interval", self.keep_best, self.validate_interval),
        ):
            if count and every % (interval := self.save_interval):
                raise ValueError(f"{name} {every} is not a multiple of save_interval {interval}")

    @property
    def update_size(self) -> tuple[str, int]:
        """The setting that gives the size of an update, and its value."""
        if self.tokens_per_update is not None:
            return "tokens_per_update", self.tokens_per_update
        assert self.sentences_per_update is not None
        return "sentences_per_update", self.sentences_per_update

    def update_limit(self, target_tokens: int, sentence_pairs: int) -> int | None:
        """Return the largest number of updates that the training can reach.

        Args:
            target_tokens: The number of target tokens of the training text.
            sentence_pairs: The number of sentence pairs of the training text.

        Returns:
            The smaller of `max_updates` and the updates in `max_epochs`; None if only `patience`
            ends the training.
        """
        if self.max_epochs is None:
            return self.max_updates
        if self.tokens_per_update is not None:
            # An update may begin in one epoch and end in the next, so only the sum is rounded up.
            all_tokens = target_tokens * self.max_epochs
            updates_in_epochs = _divide_rounding_up(all_tokens, self.tokens_per_update)
        else:
            # An update ends at the end of an epoch, so each epoch is rounded up.
            assert self.sentences_per_update is not None, "checked by __post_init__"
            updates_per_epoch = _divide_rounding_up(sentence_pairs, self.sentences_per_update)
            updates_in_epochs = self.max_epochs * updates_per_epoch
        if self.max_updates is None:
            return updates_in_epochs
        return min(updates_in_epochs, self.max_updates)


@dataclass(frozen=True)
class Average:
    """Which checkpoints are averaged: the `last` N or the `best` N; or `ema`: the moving average
    that the training kept (`train.ema`), at its end. Exactly one of these. `ensemble`: the
    checkpoints translate together, by the mean of their probabilities, instead of the mean of their
    weights.
    """

    last: Count | None = None
    best: Count | None = None
    ema: Literal[True] | None = None
    ensemble: bool = False

    def __post_init__(self) -> None:
        check_one(self, "last", "best", "ema")
        if self.ensemble and (self.ema or 1 in (self.last, self.best)):
            raise ValueError("ensemble: needs more than one checkpoint")

    @property
    def chosen(self) -> dict[str, Any]:
        """What is set, as JSON values."""
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True)
class LengthPenalty:
    """The divisor of a hypothesis's log-probability.

    ((5 + length) / 6)^alpha (gnmt; Wu et al. 2016) or length^alpha (length; fairseq's lenpen).
    """

    kind: Literal["gnmt", "length"] = "gnmt"
    alpha: Annotated[float, Interval(ge=0, le=10)] = 0.6


@dataclass(frozen=True)
class Decode:
    """Beam search of `beam` hypotheses; see beam_search.py.

    An output has at most `max_len_a` * source tokens + `max_len_b` tokens and at least
    `min_len`, EOS not counted. `no_repeat_ngram_size`: no n-gram of this order occurs twice in an
    output (0: no limit). `allow_unk`: whether an output may contain the unknown token.
    `precision`: the number format of the weights. `replace_unk`: puts the source word with the
    largest cross-attention weight in place of an unknown one (word_alignment.py). `attention`:
    keeps where the model looked in a few sentences of each test set, which the page then shows.
    """

    beam: Annotated[int, Interval(ge=1, le=MAX_BEAM)] = 4
    length_penalty: LengthPenalty = LengthPenalty()
    max_len_a: Annotated[float, Interval(ge=0, le=1000)] = 1.0
    max_len_b: Annotated[int, Interval(ge=0, le=100_000)] = 50
    min_len: Annotated[int, Interval(ge=0, le=100_000)] = 0
    no_repeat_ngram_size: Annotated[int, Interval(ge=0, le=100_000)] = 0
    allow_unk: bool = True
    precision: Literal["float32", "bfloat16"] = "float32"
    replace_unk: bool | None = None
    attention: bool | None = None

    def __post_init__(self) -> None:
        if self.replace_unk and not self.allow_unk:
            raise ValueError(
                "replace_unk true needs allow_unk true: without it, outputs contain no unknown word"
            )


@dataclass(frozen=True)
class System:
    """The settings of a system on a corpus.

    `arithmetic`: native uses all instructions, threads and GPUs of a machine; portable gives the
    same bits of weights and translations on every x86-64 processor with AVX2, in float32 with one
    thread (model/arithmetic.py).
    """

    train: Train
    model: Model = Model()
    average: Average = Average(last=5)
    decode: Decode = Decode()
    arithmetic: Literal["native", "portable"] = "native"

    def __post_init__(self) -> None:
        model = self.model
        if self.arithmetic == "portable":
            self._check_portable()
        if (least := self.decode.min_len) >= (most := model.max_positions):
            where = f"model.max_positions {most}"
            raise ValueError(f"decode.min_len {least} leaves no place for EOS in {where}")
        self.check_average(self.train.max_updates)
        if self.average.ema and self.train.ema is None:
            raise ValueError("average.ema true: training keeps no moving average without train.ema")

    def check_average(self, updates: int | None) -> None:
        """Raise ValueError if training keeps too few checkpoints to average.

        `updates`: how many it has at most; None: as many as are needed.
        """
        train, average = self.train, self.average
        for name, count, kept, interval in (
            ("last", average.last, train.keep_last, "save_interval"),
            ("best", average.best, train.keep_best, "validate_interval"),
        ):
            every = getattr(train, interval)
            made = kept if updates is None else -(-updates // every)
            if count is not None and count > min(kept, made):
                few = f"lower train.{interval} ({every})" if made < count else ""
                change = f"{few or f'raise train.keep_{name}'}, or lower average.{name}"
                raise ValueError(
                    f"average.{name} {count}: training keeps {min(kept, made)}: {change}"
                )

    def _check_portable(self) -> None:
        """Raise ValueError at settings whose bits depend on the processor."""
        for name, value, needed in (
            ("train.precision", self.train.precision, "float32"),
            ("train.compile", str(bool(self.train.compile)).lower(), "false"),
            ("decode.precision", self.decode.precision, "float32"),
        ):
            if value != needed:
                raise ValueError(f"arithmetic portable needs {name} {needed}, not {value}")


def _divide_rounding_up(dividend: int, divisor: int) -> int:
    """Return a quotient, rounded up to the next whole number."""
    return -(-dividend // divisor)
