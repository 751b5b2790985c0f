"""Two systems whose trainings are fitted to a text: a laptop finishes both in half an hour."""

from dataclasses import dataclass
from typing import NamedTuple

from bleuprint.config.system import Model
from bleuprint.model.flops import training_flops

# Seconds of one core for the updates of each training. Preparation, validation, translation and
# the report take what is left of half an hour.
_SECONDS = 1200
# More passes bring nothing, even over a text of some hundred pairs.
_MOST_PASSES = 100
_VALIDATIONS = 20
# Target tokens per update by the target tokens of the text, up to and including the key, so that a
# pass over the text has several dozen updates.
_UPDATE = {50_000: 750, 500_000: 1000}
_LARGEST_UPDATE = 1500
# Dropout by the target tokens of the text: small texts overfit sooner.
_DROPOUT = {250_000: 0.3, 1_000_000: 0.2}


class _Size(NamedTuple):
    """`flops`: sustained by one core in portable arithmetic; `lr`: at the end of the warmup."""

    d_model: int
    flops: float
    lr: float


_SIZES = {"small": _Size(128, 4.5e10, 0.002), "medium": _Size(256, 5.5e10, 0.0012)}


@dataclass(frozen=True)
class TextSize:
    """A training text: `pairs` of `source` and `target` subwords on average, EOS included.

    `vocabulary`: the number of different subwords.
    """

    pairs: int
    source: float
    target: float
    vocabulary: int

    @property
    def tokens(self) -> float:
        """The target tokens of a pass."""
        return self.pairs * self.target

    def flops(self, model: Model) -> float:
        """Floating-point operations of training on a pair."""
        lengths = round(self.source), round(self.target)
        return float(training_flops(model, self.vocabulary, *lengths))


def systems(text: TextSize, portable: bool = True) -> str:
    """The section `systems` of params.yaml for a text: small, and medium, twice as wide.

    `portable`: trains in one thread, so that both train side by side, and not on a GPU.
    """
    arithmetic = (
        "\n    arithmetic: portable # on CPUs; remove it to train on a GPU" if portable else ""
    )
    size = next((size for most, size in _UPDATE.items() if text.tokens <= most), _LARGEST_UPDATE)
    size = min(size, int(text.tokens) // 2)  # of some hundred short pairs
    dropout = next((rate for most, rate in _DROPOUT.items() if text.tokens <= most), 0.1)
    small, medium = (_train(text, size, each) for each in _SIZES.values())
    return f"""\
systems:
  small:{arithmetic}
    model:
      encoder_layers: 3
      decoder_layers: 3
      d_model: {_SIZES["small"].d_model}
      d_ff: 512
      heads: 4
      dropout: {{embedding: {dropout}, residual: {dropout}}}
    train:
      tokens_per_update: {size}
      max_tokens: {size}
{small}
      # early stopping: validations without improvement; the best checkpoints are averaged
      patience: 5
      keep: {{last: 1, best: 4}}
      clip_norm: 1.0
    average: {{best: 4}}
    decode: {{beam: 5}}
  medium:
    like: small
    model: {{d_model: {_SIZES["medium"].d_model}}}
    train:
{medium}
"""


def _train(text: TextSize, update: int, size: _Size) -> str:
    """The settings of a training that depend on its length."""
    model = Model(3, 3, size.d_model, 512, 4)
    pairs = min(_SECONDS * size.flops / text.flops(model), _MOST_PASSES * text.pairs)
    every = max(1, round(pairs * text.target / update / _VALIDATIONS))
    updates = every * _VALIDATIONS
    passes = updates * update / text.tokens
    return f"""\
      max_updates: {updates} # {passes:.{0 if passes > 10 else 1}f} passes over the text
      validate_every: {every}
      checkpoint_every: {every}
      lr_schedule: {{inverse_sqrt: {{lr: {size.lr}, warmup_updates: {min(500, every * 3)}}}}}"""
