"""The settings of a system: its model, training, averaging and decoding."""

from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

from annotated_types import Ge, Interval

from bleuprint.config.average import Average
from bleuprint.config.init_from import InitFrom
from bleuprint.config.optimization import (
    AtLeast0,
    LrSchedule,
    Noam,
    Optimizer,
    Updates,
    check_exactly_one,
)
from bleuprint.config.own_names import check_part_name, describe_parts, named_parts
from bleuprint.runtime.rounding import divide_rounding_up
from bleuprint.runtime.schema import Count, Share

Layers = Annotated[int, Interval(ge=1, le=10_000)]
Width = Annotated[int, Interval(ge=1, le=1_000_000)]
Tokens = Annotated[int, Interval(ge=1, le=10**9)]
# The largest beam that params.yaml and --beam accept.
MAX_BEAM = 1000
# The settings in which a model may differ from the model whose weights it starts from.
_SETTINGS_WITHOUT_WEIGHTS = {"dropout", "layer_drop", "init", "max_positions"}


@dataclass(frozen=True)
class Dropout:
    """Dropout probabilities.

    Attributes:
        embedding: Of embeddings, after positions are added.
        residual: Of what each sublayer adds to the residual stream.
        attention: Of attention weights.
        activation: Of the inner activations of feed-forward networks.
    """

    embedding: Share = 0.1
    residual: Share = 0.1
    attention: Share = 0.0
    activation: Share = 0.0


@dataclass(frozen=True)
class Model:
    """The Transformer's shape, in the paper's names.

    Attributes:
        encoder_layers: The number of encoder layers.
        decoder_layers: The number of decoder layers.
        d_model: The size of embeddings and of the residual stream.
        d_ff: The inner size of feed-forward networks.
        heads: The number of attention heads.
        d_k: The size of each head's queries and keys, by default d_model / heads.
        d_v: The size of each head's values, by default d_model / heads.
        norm: Whether a sublayer is normalized after its residual connection (post) or before (pre).
        normalization: LayerNorm (layer), or RMSNorm (rms; Zhang and Sennrich 2019).
        positional_encoding: sinusoidal or learned, which are added to the embeddings; rotary (Su et
            al. 2021), applied to the queries and keys of self-attention; or none.
        scale_embeddings: Whether embeddings are multiplied by d_model^0.5.
        scale_attention: Whether products of queries and keys are multiplied by d_k^-0.5.
        max_positions: The most tokens of a sentence, including EOS (or BOS).
        activation: The activation of feed-forward networks. silu is also known as swish. swiglu
            (Shazeer 2020) has three matrices instead of two: two thirds of `d_ff` keep the number
            of parameters.
        dropout: The dropout probabilities.
        layer_drop: The probability with which training skips a layer.
        bias: Whether linear layers have a bias.
        output_bias: Whether the projection to the vocabulary has a bias.
        tie_embeddings: Which of source embedding, target embedding and output projection share one
            matrix: all, the last two (decoder), or none.
        init: Xavier uniform throughout (xavier); Xavier uniform for layers, with embeddings of
            standard deviation d_model^-0.5 (scaled); or the same embeddings with layers of standard
            deviation (2 / (5 d_model))^0.5 (small; Nguyen and Salazar 2019), with which deep
            post-norm models train.
        positions: Own code instead of `positional_encoding`: own.NAME, with the class Positions.
        attention: Own code instead of multi-head attention: the class Attention.
        feed_forward: Own code instead of the feed-forward network: the class FeedForward.
        layer: Own code instead of layers: the class EncoderLayer, DecoderLayer or both.
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
    activation: Literal["relu", "gelu", "silu", "swiglu"] = "relu"
    dropout: Dropout = Dropout()
    layer_drop: Share = 0.0
    bias: bool = True
    output_bias: bool = False
    tie_embeddings: Literal["all", "decoder", "none"] = "all"
    init: Literal["xavier", "scaled", "small"] = "scaled"
    positions: str | None = None
    attention: str | None = None
    feed_forward: str | None = None
    layer: str | None = None

    def __post_init__(self) -> None:
        """Set d_k and d_v to d_model / heads if they are 0, and check the sizes.

        Raises:
            ValueError: A size does not fit another setting; or own code is not named by own.NAME.
        """
        for setting, value in self.own_parts.items():
            check_part_name(setting, value)
        if self.positions:
            # Own positions replace the built-in ones.
            object.__setattr__(self, "positional_encoding", "none")
        for name in ("d_k", "d_v"):
            is_set = getattr(self, name) != 0
            if is_set:
                continue
            if self.d_model % self.heads:
                raise ValueError(
                    f"d_model {self.d_model} is not a multiple of heads {self.heads}. Set {name}"
                )
            # A frozen dataclass refuses `self.d_k = ...`, but not this call.
            object.__setattr__(self, name, self.d_model // self.heads)
        if self.positional_encoding == "sinusoidal" and self.d_model % 2:
            raise ValueError(
                f"d_model {self.d_model} is odd, but sinusoidal encodings need it even"
            )
        if self.positional_encoding == "rotary" and self.d_k % 2:
            raise ValueError(
                f"d_k {self.d_k} is odd, but rotary encodings turn pairs of dimensions"
            )

    @property
    def own_parts(self) -> dict[str, str]:
        """The parts that are own code: the names of their modules, by the setting."""
        return named_parts(self)

    @property
    def is_built_in(self) -> bool:
        """Whether all parts of the model are those of this package."""
        return not self.own_parts

    @property
    def replaced_parts(self) -> list[str]:
        """The parts that are not built in, as messages name them: `model.layer own.plain`."""
        return describe_parts(self.own_parts)

    @property
    def needs_padded_batches(self) -> bool:
        """Whether own code computes attention, which needs sentences padded to one length."""
        return bool(self.positions or self.attention or self.layer)

    @property
    def feed_forward_weights(self) -> int:
        """The number of weights in the matrices of a feed-forward network."""
        matrices = 3 if self.activation == "swiglu" else 2
        return matrices * self.d_model * self.d_ff

    def difference(self, parent: "Model") -> str | None:
        """Return why a training of this model cannot start from the weights of another model.

        All settings must be equal, except those that do not change the weights, such as dropout.

        Args:
            parent: The settings of the other model.

        Returns:
            A message about the first setting that differs; None if the weights fit.
        """
        may_differ = _SETTINGS_WITHOUT_WEIGHTS
        if self.positional_encoding == "learned":
            # Learned encodings have weights for each position, so their number must be equal, too.
            may_differ = _SETTINGS_WITHOUT_WEIGHTS - {"max_positions"}
        for setting in fields(self):
            value = getattr(self, setting.name)
            parent_value = getattr(parent, setting.name)
            if setting.name not in may_differ and value != parent_value:
                return (
                    f"model.{setting.name} is {value}, but {parent_value} in the model that "
                    "the training starts from"
                )
        return None


@dataclass(frozen=True)
class Train:
    """How a model is trained.

    Training ends after `max_updates`, `max_epochs` or `patience`, whichever comes first.

    Attributes:
        max_tokens: The size of a batch in tokens, including padding, which memory limits. The
            batches of an update are divided among the processes. With `tokens_per_update` it also
            decides which sentences an update contains, since an update takes whole batches; with
            `sentences_per_update` it does not.
        optimizer: The optimizer.
        lr_schedule: The learning-rate schedule.
        clip_norm: The largest norm of the gradient; 0 for no limit.
        label_smoothing: The probability that is taken from the label.
        label_smoothing_target: Which tokens receive this probability: all V tokens of the
            vocabulary (uniform), or the V - 2 that are neither the label nor padding (non_target).
        bpe_dropout: The probability with which a BPE merge is skipped each time a sentence is
            read. Batches are planned by lengths without it, and contain more tokens with it (about
            a sixth at 0.1).
        precision: The number format of matrix products: float32; bfloat16 (also of activations), on
            GPUs and CPUs that have it; on GPUs also tf32, or float16 with a scaled loss.
        compile: Whether torch.compile is used, which takes minutes at the start; by default on GPUs
            that it knows.
        validation_metric: What validation measures: the loss, or BLEU.
        validate_interval: The number of updates from one validation to the next.
        save_interval: The number of updates from one checkpoint to the next.
        keep_last: How many of the newest checkpoints are kept.
        keep_best: How many of the best checkpoints by `validation_metric` are kept.
        keep_interval: Checkpoints at multiples of this update are kept, too; 0 for none.
        tokens_per_update: The target tokens of an update, over all processes. Either this setting
            or the next one is set.
        sentences_per_update: The sentence pairs of an update, over all processes.
        ema: The decay of an exponential moving average of the weights, kept for `average`. After
            update n, it is the mean of the weights after updates i = 1 to n, weighted by
            ema^(n - i).
        max_updates: The number of updates after which training ends.
        max_epochs: The number of epochs after which training ends.
        patience: The number of validations in a row without an improvement after which training
            ends.
        init_from: The weights that training starts from, instead of random ones.
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
        """Raise ValueError if settings contradict each other.

        The size of an update must be set in one way, the training must have an end, and the
        checkpoints to keep must be at updates at which checkpoints are saved.
        """
        check_exactly_one(self, "tokens_per_update", "sentences_per_update")
        if self.tokens_per_update is not None and self.max_tokens > self.tokens_per_update:
            raise ValueError(
                f"max_tokens {self.max_tokens} is above tokens_per_update {self.tokens_per_update}"
            )
        if self.max_updates is None and self.max_epochs is None and self.patience is None:
            raise ValueError("training would never end. Set max_updates, max_epochs or patience")
        # Only a checkpoint that is saved can be kept.
        if self.keep_interval and self.keep_interval % self.save_interval:
            raise ValueError(
                f"keep_interval {self.keep_interval} is not a multiple of save_interval "
                f"{self.save_interval}"
            )
        # The best checkpoint is found by validation, so it must be saved at each validation.
        if self.keep_best and self.validate_interval % self.save_interval:
            raise ValueError(
                f"validate_interval {self.validate_interval} is not a multiple of save_interval "
                f"{self.save_interval}"
            )

    @property
    def update_size(self) -> tuple[str, int]:
        """The size of an update, as the setting that is used: ("tokens_per_update", 25000)."""
        if self.tokens_per_update is not None:
            return "tokens_per_update", self.tokens_per_update
        assert self.sentences_per_update is not None
        return "sentences_per_update", self.sentences_per_update

    def update_limit(self, target_tokens: int, sentence_pairs: int) -> int | None:
        """Return the largest number of updates; None if only `patience` ends the training.

        Args:
            target_tokens: The number of target tokens of the training text.
            sentence_pairs: The number of sentence pairs of the training text.
        """
        if self.max_epochs is None:
            return self.max_updates
        updates_in_epochs = self._updates_in_epochs(self.max_epochs, target_tokens, sentence_pairs)
        if self.max_updates is None:
            return updates_in_epochs
        return min(updates_in_epochs, self.max_updates)

    def _updates_in_epochs(self, epochs: int, target_tokens: int, sentence_pairs: int) -> int:
        """Return how many updates a number of epochs takes.

        Args:
            epochs: How many times the training reads the training text.
            target_tokens: The number of target tokens of the training text.
            sentence_pairs: The number of sentence pairs of the training text.
        """
        if self.tokens_per_update is not None:
            # An update may begin in one epoch and end in the next, so only the sum is rounded up.
            return divide_rounding_up(target_tokens * epochs, self.tokens_per_update)
        # The last update of an epoch may be smaller, so each epoch is rounded up.
        assert self.sentences_per_update is not None, "checked by __post_init__"
        return epochs * divide_rounding_up(sentence_pairs, self.sentences_per_update)


@dataclass(frozen=True)
class LengthPenalty:
    """The length penalty, by which the log-probability of a hypothesis is divided.

    Attributes:
        kind: ((5 + length) / 6)^alpha (gnmt; Wu et al. 2016), or length^alpha (length; fairseq's
            lenpen).
        alpha: The exponent.
    """

    kind: Literal["gnmt", "length"] = "gnmt"
    alpha: Annotated[float, Interval(ge=0, le=10)] = 0.6


@dataclass(frozen=True)
class Decode:
    """How a system translates: by beam search (beam_search.py).

    Attributes:
        beam: The number of hypotheses.
        length_penalty: The length penalty.
        max_len_a: An output has at most `max_len_a` * source tokens + `max_len_b` tokens.
        max_len_b: See `max_len_a`.
        min_len: An output has at least this many tokens, without EOS.
        no_repeat_ngram_size: No n-gram of this order occurs twice in an output; 0 for no limit.
        allow_unk: Whether an output may contain the unknown token.
        precision: The number format of the weights.
        replace_unk: Whether an unknown token is replaced by the source word with the largest
            cross-attention weight (word_alignment.py).
        attention: Whether attention weights of a few sentences of each test set are kept, which the
            HTML report then shows.
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
        """Raise ValueError if `replace_unk` is set, but outputs cannot contain unknown tokens."""
        if self.replace_unk and not self.allow_unk:
            raise ValueError(
                "replace_unk true needs allow_unk true. Otherwise outputs contain no unknown words"
            )


@dataclass(frozen=True)
class System:
    """The settings of a system on a corpus.

    Attributes:
        train: How the model is trained.
        model: The model.
        average: Which checkpoints are averaged.
        decode: How the system translates.
        arithmetic: native uses all instructions, threads and GPUs of a machine; portable gives the
            same bits of weights and translations on every x86-64 processor with AVX2, in float32
            with one thread (model/arithmetic.py).
    """

    train: Train
    model: Model = Model()
    average: Average = field(default_factory=lambda: Average(last=5))
    decode: Decode = Decode()
    arithmetic: Literal["native", "portable"] = "native"

    def __post_init__(self) -> None:
        """Check the settings of model, training, averaging and decoding together.

        Raises:
            ValueError: Settings contradict each other. For example, more checkpoints are averaged
                than the training keeps.
        """
        if self.arithmetic == "portable":
            self._check_portable()
        min_len = self.decode.min_len
        max_positions = self.model.max_positions
        # The last position is for EOS, the token that ends a sentence.
        if min_len >= max_positions:
            raise ValueError(
                f"decode.min_len {min_len} leaves no position for EOS in model.max_positions "
                f"{max_positions}"
            )
        self._check_attention_weights()
        self.check_average(self.train.max_updates)
        if self.average.ema and self.train.ema is None:
            raise ValueError(
                "average.ema needs the moving average that training keeps with train.ema. Set "
                "train.ema"
            )

    def check_average(self, max_updates: int | None) -> None:
        """Raise ValueError if training keeps fewer checkpoints than are to be averaged.

        Args:
            max_updates: The largest number of updates that the training can reach; None if it is
                not limited.
        """
        average = self.average
        if average.last is not None:
            self._check_kept(
                "last", average.last, interval_setting="save_interval", max_updates=max_updates
            )
        if average.best is not None:
            self._check_kept(
                "best", average.best, interval_setting="validate_interval", max_updates=max_updates
            )

    def _check_kept(
        self,
        choice: Literal["last", "best"],
        averaged_checkpoints: int,
        interval_setting: Literal["save_interval", "validate_interval"],
        max_updates: int | None,
    ) -> None:
        """Raise ValueError if training keeps fewer checkpoints than are to be averaged.

        Training keeps at most as many checkpoints as `keep_last` or `keep_best` says. A short
        training saves even fewer.

        Args:
            choice: Whether the last or the best checkpoints are averaged.
            averaged_checkpoints: How many of them are averaged.
            interval_setting: The setting of `train` with the number of updates between two such
                checkpoints. Only validated checkpoints can be the best.
            max_updates: The largest number of updates; None if it is not limited.
        """
        keep_limit = getattr(self.train, f"keep_{choice}")
        kept_checkpoints = keep_limit
        advice = f"Raise train.keep_{choice}"
        if max_updates is not None:
            interval = getattr(self.train, interval_setting)
            # Rounded up, since the last checkpoint is saved at the end of the training.
            saved_checkpoints = divide_rounding_up(max_updates, interval)
            kept_checkpoints = min(keep_limit, saved_checkpoints)
            if saved_checkpoints < averaged_checkpoints:
                advice = f"Lower train.{interval_setting} ({interval})"
        if averaged_checkpoints > kept_checkpoints:
            raise ValueError(
                f"average.{choice} is {averaged_checkpoints}, but training keeps only "
                f"{kept_checkpoints}. {advice}, or lower average.{choice}"
            )

    def _check_portable(self) -> None:
        """Raise ValueError if a setting does not work with portable arithmetic.

        Portable arithmetic gives the same results, bit by bit, on every processor. It computes in
        float32, and torch.compile cannot compile its kernels.
        """
        # `true` or `false`, as in params.yaml.
        compile_text = str(bool(self.train.compile)).lower()
        for setting, value, needed_value in (
            ("train.precision", self.train.precision, "float32"),
            ("train.compile", compile_text, "false"),
            ("decode.precision", self.decode.precision, "float32"),
        ):
            if value != needed_value:
                raise ValueError(f"arithmetic portable needs {setting} {needed_value}, not {value}")

    def _check_attention_weights(self) -> None:
        """Raise ValueError if decoding needs attention weights that the model does not have.

        Only the built-in attention records its weights.
        """
        if not self.model.attention and not self.model.layer:
            return
        for setting in ("replace_unk", "attention"):
            if getattr(self.decode, setting):
                raise ValueError(
                    f"decode.{setting} needs the weights of the built-in attention. Remove "
                    f"decode.{setting}, or model.attention and model.layer"
                )
