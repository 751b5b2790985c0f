"""Compute the values of the figures that courses on the Transformer print.

They come from the functions that train and translate; tests compare them with the published
numbers, and figures.py draws them.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from bleuprint.config.experiment import load_settings
from bleuprint.config.optimization import LrSchedule, Noam
from bleuprint.config.system import Decode, LengthPenalty, Model
from bleuprint.dataset.subwords.vocabulary import EOS, PAD, SPECIALS, Vocabulary
from bleuprint.decoding.beam_search import beam_search
from bleuprint.decoding.engine import SPECIAL_TOKENS
from bleuprint.model.attention import MultiHeadAttention
from bleuprint.model.layout import PaddedLayout
from bleuprint.model.linear import Linear
from bleuprint.model.positions import sinusoidal_positions
from bleuprint.model.transformer import Transformer
from bleuprint.training.loss import linear_cross_entropy
from bleuprint.training.lr_schedule import learning_rate

ROOT = Path(__file__).parent.parent

# The sizes that The Annotated Transformer draws.
MASK_POSITIONS = 20
SINUSOID_POSITIONS = 100
SINUSOID_D_MODEL = 20
SINUSOID_DIMENSIONS = (4, 5, 6, 7)
SCHEDULE_UPDATES = 20_000
# Pairs of d_model and warm-up updates.
SCHEDULES = ((512, 4000), (512, 8000), (256, 4000))
SMOOTHING_VOCABULARY = 5
SMOOTHING_LABELS = (2, 1, PAD, 3, 3)
CONFIDENCE_RATIOS = tuple(range(1, 100))
UNTRAINED_MODELS = 10
COPY_LENGTH = 10

# Inputs and projections of the worked example in "Illustrated: Self-Attention" (Karim 2019):
# three inputs of four dimensions, queries, keys and values of three.
WORKED_INPUTS = ((1, 0, 1, 0), (0, 2, 0, 2), (1, 1, 1, 1))
WORKED_QUERY = ((1, 0, 1), (1, 0, 0), (0, 0, 1), (0, 1, 1))
WORKED_KEY = ((0, 0, 1), (1, 1, 0), (0, 1, 0), (1, 1, 0))
WORKED_VALUE = ((0, 2, 0), (0, 3, 0), (1, 0, 3), (1, 1, 0))

# A masked-out token's logit: its probability is 0 in float32, and its logarithm is finite.
_IMPOSSIBLE = -1e4


def copy_model_settings() -> Model:
    """Return the model settings of the copy task in its edition of 2018."""
    experiment = load_settings(ROOT / "recipes" / "copy.yaml")
    return experiment.system_on("edition-2018", "copy").model


def subsequent_mask() -> Tensor:
    """Compute which target positions each target position sees in the decoder.

    Returns:
        Booleans (T, T) for T = 20 positions: row t is True up to and including column t. They are
        read from the attention weights of a decoder: a weight above 0 is a position that is seen.
    """
    settings = replace(copy_model_settings(), encoder_layers=1, decoder_layers=1)
    torch.manual_seed(1)
    model = Transformer(settings, len(SPECIALS) + 1, len(SPECIALS) + 1).eval()
    token_ids = torch.full((1, MASK_POSITIONS), len(SPECIALS))
    weights = model.attention_weights(token_ids, token_ids).decoder[0]
    first_head = weights[0, 0]
    return first_head > 0


def sinusoids() -> Tensor:
    """Compute the positional encoding.

    Returns:
        Sinusoids (T, D) for T = 100 positions and D = 20 dimensions.
    """
    return sinusoidal_positions(torch.arange(SINUSOID_POSITIONS), SINUSOID_D_MODEL)


def learning_rates(d_model: int, warmup_updates: int) -> list[float]:
    """Compute the learning rates of section 5.3 of the Transformer paper.

    Args:
        d_model: The dimension of the model.
        warmup_updates: The number of updates during which the rate rises.

    Returns:
        The rates at the updates 1 to 20,000.
    """
    schedule = LrSchedule(noam=Noam(factor=1.0, warmup_updates=warmup_updates))
    updates = range(1, SCHEDULE_UPDATES + 1)
    return [learning_rate(schedule, update, d_model) for update in updates]


def smoothed_targets() -> Tensor:
    """Compute the target distributions that label smoothing of 0.4 gives five labels.

    The gradient of the loss by the logits is the softmax minus the target distribution, so the
    difference of the two is what training compares a prediction with.

    Returns:
        Probabilities (label, token): 5 labels and a vocabulary of 5 tokens. The row of a label
        that is padding is 0, since training leaves padding out of the loss.
    """
    labels = torch.tensor(SMOOTHING_LABELS)
    logits = torch.zeros(len(labels), SMOOTHING_VOCABULARY, requires_grad=True)
    is_counted = labels != PAD
    loss = _cross_entropy(logits[is_counted], labels[is_counted], smoothing=0.4)
    (gradient,) = torch.autograd.grad(loss, logits)
    targets = torch.softmax(logits.detach(), dim=-1) - gradient
    targets[~is_counted] = 0.0
    # Rounding leaves numbers just below 0.
    return targets.clamp(min=0.0)


def confidence_loss(ratio: float, smoothing: float) -> float:
    """Compute the loss of a prediction of one word.

    Args:
        ratio: How many times as probable as each other word the label is. The vocabulary is the
            label, three other words and padding, which has the probability 0.
        smoothing: The label smoothing.

    Returns:
        The loss in nats.
    """
    label = 1
    logits = torch.zeros(1, SMOOTHING_VOCABULARY)
    logits[0, label] = math.log(ratio)
    logits[0, PAD] = _IMPOSSIBLE
    return _cross_entropy(logits, torch.tensor([label]), smoothing).item()


def _cross_entropy(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Compute the loss as in training, which projects its inputs to logits.

    Args:
        logits: The logits of each prediction, (labels, vocabulary). The projection is the identity,
            so that they are the inputs, too.
        labels: The right tokens, (labels,).
        smoothing: The label smoothing.

    Returns:
        The loss in nats, summed over the labels.
    """
    size = logits.size(1)
    identity = Linear(size, size, bias=False)
    with torch.no_grad():
        identity.weight.copy_(torch.eye(size))
    return linear_cross_entropy(
        logits,
        identity,
        labels,
        smoothing,
        smoothing_target="non_target",
    )


def untrained_predictions() -> list[list[str]]:
    """Translate "1 2 ... 10" with ten copy models that have not been trained.

    Returns:
        Ten lists of ten tokens, by greedy search. The models differ in the seed of their initial
        weights, which is 1 to 10.
    """
    symbols = [str(number) for number in range(1, COPY_LENGTH + 1)]
    vocabulary = Vocabulary([(symbol, 1) for symbol in symbols])
    source = torch.tensor([[*vocabulary.encode(symbols), EOS]])
    length_with_eos = torch.tensor([COPY_LENGTH + 1])
    greedy = Decode(
        beam=1,
        length_penalty=LengthPenalty(alpha=0.0),
        # An untrained model ends at any time: ask for ten symbols.
        min_len=COPY_LENGTH,
        allow_unk=False,
    )
    predictions = []
    for seed in range(1, UNTRAINED_MODELS + 1):
        torch.manual_seed(seed)
        model = Transformer(copy_model_settings(), len(vocabulary), len(vocabulary)).eval()
        with torch.inference_mode():
            cache = model.init_cache(source)
            hypotheses = beam_search(model.step, cache, length_with_eos, SPECIAL_TOKENS, greedy)
        # The best hypothesis of the only sentence.
        token_ids = hypotheses[0][0].tokens[:COPY_LENGTH]
        predictions.append([vocabulary.tokens[token_id] for token_id in token_ids])
    return predictions


@dataclass(frozen=True)
class WorkedAttention:
    """Self-attention of three inputs, step by step; each tensor has a row for each input.

    Attributes:
        queries: The queries, (3, 3).
        keys: The keys, (3, 3).
        values: The values, (3, 3).
        scores: The products of queries and keys, (query, key). As in the published example, they
            are not divided by the root of the dimension.
        weights: The softmax of each query's scores, (query, key).
        outputs: The sums of the values, weighted, (3, 3).
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    scores: Tensor
    weights: Tensor
    outputs: Tensor


def worked_attention() -> WorkedAttention:
    """Compute the published example with the attention layer of the model."""
    inputs = torch.tensor(WORKED_INPUTS, dtype=torch.float32)
    settings = replace(
        copy_model_settings(),
        heads=1,
        d_model=4,
        d_k=3,
        d_v=3,
        bias=False,
        scale_attention=False,
    )
    layer = MultiHeadAttention(settings).eval()
    # The layer has the three projections in one matrix, transposed.
    projections = [torch.tensor(matrix).t() for matrix in (WORKED_QUERY, WORKED_KEY, WORKED_VALUE)]
    with torch.no_grad():
        layer.in_proj.weight.copy_(torch.cat(projections))
        # The layer projects its result back to d_model, which is 4. The first three numbers stay
        # the same, and the fourth is 0.
        layer.out_proj.weight.copy_(torch.eye(4, 3))
    recorded_weights: list[torch.Tensor] = []
    layout = PaddedLayout(
        size=(1, len(inputs)), rounds_up_rows=False, recorded_weights=recorded_weights
    )
    with torch.inference_mode():
        queries, keys, values = layer.project_qkv(layout.rows(inputs[None]), layout)
        outputs = layer(layout.rows(inputs[None]), layout)[: len(inputs), :3]
    # Attention divides by the root of the dimension; the layer has multiplied the queries by it.
    unscaled_queries = queries[0, 0] / layer.query_scale
    return WorkedAttention(
        queries=unscaled_queries,
        keys=keys[0, 0],
        values=values[0, 0],
        scores=unscaled_queries @ keys[0, 0].t(),
        weights=recorded_weights[0][0, 0],
        outputs=outputs,
    )
