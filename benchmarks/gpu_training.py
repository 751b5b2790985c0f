"""The part `train` of benchmarks/gpu.py: the speed of training, by figure and size of model.

Each figure is target tokens per second without padding, and MFU: the operations that
bleuprint.model.flops counts, as a share of the device's dense peak in that precision. Updates of a
batch of at most --max-tokens padded tokens a side come from drawn_corpus.py and are read ahead, as
in a training. As many updates (--updates) as went before are timed, and more until SECONDS are
over. Figures, in the order in which they are measured:

- eager, default: bfloat16 without `train.compile` and CUDA graphs, and with both as by default
- nn.Transformer: torch_transformer.py, in bfloat16
- loss, attention: 25,000 tokens of one part alone, forward and backward in bfloat16: ours, and
  torch's cross_entropy of a product, or nn.MultiheadAttention (sentences of 30 tokens, causal)
- annotated style: annotated.py, in float32
- TF32, float32: ours, as by default
- profile: the kernels of an eager update that take longest, in milliseconds
"""

import argparse
import atexit
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

import annotated
import torch_transformer
from bleuprint.config.experiment import load_settings
from bleuprint.config.system import Model, System
from bleuprint.dataset.batching import Position
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.attention import MultiHeadAttention
from bleuprint.model.backends import can_pack
from bleuprint.model.flops import training_flops
from bleuprint.model.layout import PackedLayout, PaddedLayout
from bleuprint.model.linear import Linear
from bleuprint.model.precision import round_to_bfloat16
from bleuprint.model.rows import pad_rows
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.distributed.group import Group
from bleuprint.tracking.hardware import describe_machine, peak_flops
from bleuprint.training.data_loader import local_updates, prefetch
from bleuprint.training.loss import linear_cross_entropy
from bleuprint.training.train_step import TrainStep
from drawn_corpus import SOURCE, TARGET, drawn_corpus
from toolkits import ROOT, Size

Precision: TypeAlias = Literal["float32", "tf32", "bfloat16"]
Measurement: TypeAlias = Callable[[Size, argparse.Namespace], dict[str, Any]]

VOCABULARY_SIZE = 37_000
PAIRS = 100_000
SIZES = {
    "base": Size(d_model=512, d_ff=2048, layers=6, heads=8),
    "big": Size(d_model=1024, d_ff=4096, layers=6, heads=16),
    "tiny": Size(d_model=128, d_ff=256, layers=4, heads=4),
}
SMOOTHING = 0.1
# Steps are timed for at least this long.
SECONDS = 2.0
# The length of all sentences of the figure `attention`.
SENTENCE_LENGTH = 30
# How many kernels the figure `profile` names.
SHOWN_KERNELS = 15
# The first pairs of the corpus, over which operations per token are averaged.
COUNTED_PAIRS = 10_000
# Batches until nearly all their shapes are recorded as CUDA graphs, in multiples of --updates.
RECORDING_ROUNDS = 6


def train_figures(arguments: argparse.Namespace) -> Iterator[tuple[list[str], Callable[[], Any]]]:
    """Yield the name of each figure and size, and its measurement.

    Args:
        arguments: The arguments of benchmarks/gpu.py; `figures` and `sizes` choose from all.
    """
    for name in arguments.figures or FIGURES:
        for size in arguments.sizes or SIZES:
            yield [name, size], partial(FIGURES[name], SIZES[size], arguments)


def measure_ours(
    size: Size, arguments: argparse.Namespace, *, precision: Precision, is_eager: bool
) -> dict[str, Any]:
    """Measure the speed of bleuprint's training updates.

    Args:
        size: The size of the model.
        arguments: The arguments of benchmarks/gpu.py.
        precision: The precision of the training.
        is_eager: Whether to train without compiled layers and CUDA graphs.
    """
    device = torch.device(arguments.device)
    with closing(computed_updates(size, arguments, precision, is_eager)) as updates:
        if device.type == "cuda" and not is_eager:
            # Each shape of batch is compiled or recorded when it first occurs. Most shapes occur in
            # these updates, which are not timed.
            for _ in range(RECORDING_ROUNDS * arguments.updates):
                next(updates)
        rate = tokens_per_second(partial(next, updates), arguments)
        return speed(rate, precision, training_flops_per_token(size), device)


def measure_kernels(size: Size, arguments: argparse.Namespace) -> dict[str, float]:
    """Return the GPU kernels that take longest, in milliseconds per update.

    On a CPU, these are operations of torch instead.

    Args:
        size: The size of the model.
        arguments: The arguments of benchmarks/gpu.py.
    """
    device = torch.device(arguments.device)
    activities = [ProfilerActivity.CPU]
    attribute = "self_cpu_time_total"
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
        attribute = "self_device_time_total"
    with closing(computed_updates(size, arguments, "bfloat16", is_eager=True)) as updates:
        for _ in range(arguments.updates):
            next(updates)
        annotated.synchronized_time(device)
        with profile(activities=activities) as profiler:
            for _ in range(arguments.updates):
                next(updates)
            annotated.synchronized_time(device)
    microseconds = {}
    for event in profiler.key_averages():
        microseconds[event.key] = getattr(event, attribute)
    longest_first = sorted(microseconds, key=lambda name: -microseconds[name])
    milliseconds = {}
    for name in longest_first[:SHOWN_KERNELS]:
        milliseconds[name] = round(microseconds[name] / 1e3 / arguments.updates, 3)
    return milliseconds


def computed_updates(
    size: Size, arguments: argparse.Namespace, precision: Precision, is_eager: bool
) -> Generator[int, None, None]:
    """Compute updates as a training does, and yield the target tokens of each.

    The loss of an update is read from the device only after the next update has been launched, so
    that the device never waits for the host.

    Args:
        size: The size of the model.
        arguments: The arguments of benchmarks/gpu.py.
        precision: The precision of the training.
        is_eager: Whether to train without compiled layers and CUDA graphs.
    """
    system = system_settings(size, precision, is_eager, arguments)
    group = Group(0, 1, torch.device(arguments.device))
    torch.manual_seed(1)
    model = Transformer(system.model, VOCABULARY_SIZE, VOCABULARY_SIZE)
    step = TrainStep(model.to(group.device).train(), system.train, 1, group)
    if is_eager:
        # A step records CUDA graphs if launching its kernels takes long ("launch-bound"). This says
        # that it never does. `setattr` is used, since mypy refuses to replace a method.
        setattr(step, "_is_launch_bound", lambda _: False)  # noqa: B010
    updates = local_updates(random_corpus(), system, 1, Position(), group)
    with closing(prefetch(updates)) as prefetched:
        previous = None
        for number, local in enumerate(prefetched, 1):
            pending = step.update(number, local)
            if previous is not None:
                step.read_stats(previous)
            previous = pending
            yield local.update.tokens


def measure_annotated(size: Size, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure a training in the style of The Annotated Transformer, in float32.

    Args:
        size: The size of the model.
        arguments: The arguments of benchmarks/gpu.py.

    Returns:
        Target tokens per second, and MFU.
    """
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(1)
    model = annotated.EncoderDecoder(
        layers=size.layers,
        d_model=size.d_model,
        d_ff=size.d_ff,
        heads=size.heads,
        vocabulary_size=VOCABULARY_SIZE,
    )
    model = model.to(arguments.device)
    options = annotated_options(arguments)
    rate = annotated.train(model, size.d_model, random_corpus(), options)
    return speed(rate, "float32", training_flops_per_token(size), torch.device(arguments.device))


def measure_torch(size: Size, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure torch's nn.Transformer, in bfloat16.

    Args:
        size: The size of the model.
        arguments: The arguments of benchmarks/gpu.py.

    Returns:
        Target tokens per second, and MFU.
    """
    torch.manual_seed(1)
    options = annotated_options(arguments)
    rate = torch_transformer.train(size, VOCABULARY_SIZE, random_corpus(), options)
    return speed(rate, "bfloat16", training_flops_per_token(size), torch.device(arguments.device))


def annotated_options(arguments: argparse.Namespace) -> annotated.TrainOptions:
    """Return how the contestants that use annotated.train are trained.

    Args:
        arguments: The arguments of benchmarks/gpu.py.
    """
    return annotated.TrainOptions(
        updates=arguments.updates,
        batch_tokens=arguments.max_tokens,
        seed=1,
        device=arguments.device,
    )


def measure_loss(size: Size, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure the projection to the vocabulary with its loss, forward and backward.

    It takes much of a training's time and memory: 37,000 logits for each token.

    Args:
        size: The size of the model; only `d_model` counts.
        arguments: The arguments of benchmarks/gpu.py.

    Returns:
        Tokens per second and MFU, of ours and of torch's way.
    """
    device = torch.device(arguments.device)
    tokens: int = arguments.max_tokens
    is_compiled = device.type == "cuda"
    hidden = torch.randn(tokens, size.d_model, device=device, dtype=torch.bfloat16)
    hidden.requires_grad_()
    labels = torch.randint(VOCABULARY_SIZE, (tokens,), device=device)
    projection = Linear(size.d_model, VOCABULARY_SIZE, bias=False).to(device)
    round_to_bfloat16(projection)

    def our_loss() -> int:
        loss = linear_cross_entropy(hidden, projection, labels, SMOOTHING, is_compiled=is_compiled)
        torch.autograd.backward(loss)
        return tokens

    def torch_loss() -> int:
        """Compute the loss as torch's users do: all logits, then cross_entropy."""
        with torch.autocast(device.type, torch.bfloat16):
            logits = functional.linear(hidden, projection.weight)
            loss = functional.cross_entropy(
                logits,
                labels,
                label_smoothing=SMOOTHING,
                reduction="sum",
            )
        torch.autograd.backward(loss)
        return tokens

    # Three matrix products, forward and for the gradients of both factors, each of them with one
    # multiplication and one addition for every weight: 3 * 2 = 6.
    flops_per_token = 6 * size.d_model * VOCABULARY_SIZE
    return compare_steps(our_loss, torch_loss, flops_per_token, arguments)


def measure_attention(size: Size, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure causal self-attention of one layer with its projections, forward and backward.

    Ours is compared with torch's nn.MultiheadAttention, on sentences of one length.

    Args:
        size: The size of the model.
        arguments: The arguments of benchmarks/gpu.py.

    Returns:
        Tokens per second and MFU, of ours and of torch's way.
    """
    device = torch.device(arguments.device)
    sentences = max(1, int(arguments.max_tokens) // SENTENCE_LENGTH)
    tokens = sentences * SENTENCE_LENGTH
    x = torch.randn(
        sentences,
        SENTENCE_LENGTH,
        size.d_model,
        device=device,
        dtype=torch.bfloat16,
    )
    x.requires_grad_()
    settings = model_settings(size)
    is_packed = can_pack(settings, x.dtype, device)
    layout: PackedLayout | PaddedLayout
    if is_packed:
        starts = torch.arange(0, tokens + 1, SENTENCE_LENGTH, device=device, dtype=torch.int32)
        layout = PackedLayout(starts, SENTENCE_LENGTH)
    else:
        layout = PaddedLayout((sentences, SENTENCE_LENGTH))
    attention = MultiHeadAttention(settings).to(device)
    round_to_bfloat16(attention)
    multihead = nn.MultiheadAttention(size.d_model, size.heads, batch_first=True).to(device)
    ones = torch.ones(SENTENCE_LENGTH, SENTENCE_LENGTH, dtype=torch.bool, device=device)
    is_future = ones.triu(1)

    def our_attention() -> int:
        rows = x.flatten(0, 1) if is_packed else pad_rows(x)
        y = attention(rows, layout, causal=True)
        torch.autograd.backward(y, torch.ones_like(y))
        return tokens

    def torch_attention() -> int:
        with torch.autocast(device.type, torch.bfloat16):
            y, _ = multihead(x, x, x, attn_mask=is_future, is_causal=True, need_weights=False)
        torch.autograd.backward(y, torch.ones_like(y))
        return tokens

    # Per token: 2 operations for each weight of four projections of d_model x d_model; then, with
    # each other token, 2 operations per dimension for queries with keys, and 2 for weights with
    # values. The gradients of both factors take twice as much, so the total is three times this.
    forward_flops = 8 * size.d_model**2 + 4 * SENTENCE_LENGTH * size.d_model
    return compare_steps(our_attention, torch_attention, 3 * forward_flops, arguments)


def compare_steps(
    our_step: Callable[[], int],
    torch_step: Callable[[], int],
    flops_per_token: float,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Measure two ways to compute the same in bfloat16: bleuprint's and torch's.

    Args:
        our_step: Computes it in bleuprint's way, and returns the number of tokens.
        torch_step: Computes it in torch's way, and returns the number of tokens.
        flops_per_token: The operations that it takes, for MFU.
        arguments: The arguments of benchmarks/gpu.py.
    """
    device = torch.device(arguments.device)
    figures = {}
    for name, step in (("ours", our_step), ("torch", torch_step)):
        rate = tokens_per_second(step, arguments)
        figures[name] = speed(rate, "bfloat16", flops_per_token, device)
    return figures


def tokens_per_second(step: Callable[[], int], arguments: argparse.Namespace) -> float:
    """Measure the tokens per second of a step, over SECONDS or longer, after warming up.

    Args:
        step: Computes some tokens, and returns how many.
        arguments: The arguments of benchmarks/gpu.py.
    """
    device = torch.device(arguments.device)
    for _ in range(arguments.updates):
        step()
    tokens = 0
    steps = 0
    start = annotated.synchronized_time(device)
    while steps < arguments.updates or time.monotonic() - start < SECONDS:
        tokens += step()
        steps += 1
    return tokens / (annotated.synchronized_time(device) - start)


def speed(
    rate: float, precision: Precision, flops_per_token: float, device: torch.device
) -> dict[str, Any]:
    """Return tokens per second, and MFU: the share of the device's peak FLOP/s, if it is known.

    Args:
        rate: The tokens per second.
        precision: The precision, for which the peak is looked up.
        flops_per_token: The FLOPs for each token.
        device: The device.
    """
    machine = describe_machine(Group(0, 1, device))
    peak = peak_flops(machine["device"], precision)
    mfu = None
    if peak:
        mfu = round(rate * flops_per_token / peak, 4)
    return {"tokens_per_second": round(rate, 1), "mfu": mfu}


@cache
def random_corpus() -> BinaryCorpus:
    """Return the corpus of random ids, in a folder that is removed at the end of the process."""
    scratch = TemporaryDirectory()
    atexit.register(scratch.cleanup)
    return drawn_corpus(Path(scratch.name) / "binary", VOCABULARY_SIZE, PAIRS)


def training_flops_per_token(size: Size) -> float:
    """Return the FLOPs of a training per target token, averaged over the first pairs.

    Args:
        size: The size of the model.
    """
    corpus = random_corpus()
    source_lengths = corpus.side("train", SOURCE).lengths[:COUNTED_PAIRS].tolist()
    target_lengths = corpus.side("train", TARGET).lengths[:COUNTED_PAIRS].tolist()
    model = model_settings(size)
    flops = 0
    for source_length, target_length in zip(source_lengths, target_lengths, strict=True):
        flops += training_flops(model, VOCABULARY_SIZE, source_length, target_length)
    return float(flops / sum(target_lengths))


def system_settings(
    size: Size, precision: Precision, is_eager: bool, arguments: argparse.Namespace
) -> System:
    """Return the base model of recipe table2 in another size and precision.

    Args:
        size: The size of the model.
        precision: The precision of the training.
        is_eager: Whether to train without compiled layers and CUDA graphs.
        arguments: The arguments of benchmarks/gpu.py; `max_tokens` is the size of a batch.
    """
    system = load_settings(ROOT / "recipes" / "table2.yaml").system_settings("base")
    train = replace(
        system.train,
        tokens_per_update=arguments.max_tokens,
        max_tokens=arguments.max_tokens,
        precision=precision,
        compile=False if is_eager else None,  # None: the default
    )
    return replace(system, model=model_settings(size), train=train)


def model_settings(size: Size) -> Model:
    """Return the paper's model in another size.

    Args:
        size: The size of the model.
    """
    return Model(
        encoder_layers=size.layers,
        decoder_layers=size.layers,
        d_model=size.d_model,
        d_ff=size.d_ff,
        heads=size.heads,
    )


FIGURES: dict[str, Measurement] = {
    "default": partial(measure_ours, precision="bfloat16", is_eager=False),
    "eager": partial(measure_ours, precision="bfloat16", is_eager=True),
    "nn.Transformer": measure_torch,
    "loss": measure_loss,
    "attention": measure_attention,
    "annotated style": measure_annotated,
    "TF32": partial(measure_ours, precision="tf32", is_eager=False),
    "float32": partial(measure_ours, precision="float32", is_eager=False),
    "profile": measure_kernels,
}
