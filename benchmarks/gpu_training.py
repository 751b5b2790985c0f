"""The part `train` of benchmarks/gpu.py: speeds of training, by figure and size of model.

Target tokens a second without padding, and MFU: the operations of bleuprint.model.flops by the
device's dense peak in that precision. Updates of a batch of at most --max-tokens padded tokens a
side are of drawn_corpus.py, read ahead as in a training; timed are as many updates (--updates) as
went before, and more until SECONDS are over. Figures, in the order in which they are measured:

- eager, default: bfloat16 without `train.compile` and CUDA graphs, and with both as by default
- nn.Transformer: torch_transformer.py, in bfloat16
- loss, attention: of 25,000 tokens alone, forward and backward in bfloat16: ours, and torch's
  cross_entropy of a product, and nn.MultiheadAttention (sentences of 30 tokens, causal)
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
Figure: TypeAlias = Callable[[Size, argparse.Namespace], dict[str, Any]]

VOCABULARY, PAIRS = 37_000, 100_000
SIZES = {
    "base": Size(512, 2048, 6, 8),
    "big": Size(1024, 4096, 6, 16),
    "tiny": Size(128, 256, 4, 4),
}
# At least so long is timed, in seconds; the length of sentences for `attention`; kernels shown; the
# pairs of which operations are counted.
SECONDS, LENGTH, KERNELS, PRICED = 2.0, 30, 15, 10_000
SMOOTHING = 0.1


def figures(given: argparse.Namespace) -> Iterator[tuple[list[str], Callable[[], Any]]]:
    """The name and the measurement of each."""
    for name in given.figures or FIGURES:
        for size in given.sizes or SIZES:
            yield [name, size], partial(FIGURES[name], SIZES[size], given)


def ours(
    precision: Precision, eager: bool, size: Size, given: argparse.Namespace
) -> dict[str, Any]:
    """Updates by TrainStep."""
    device = torch.device(given.device)
    with closing(updates_of(precision, eager, size, given)) as updates:
        if device.type == "cuda" and not eager:  # until batches of nearly all shapes are recorded
            for _ in range(6 * given.updates):
                next(updates)
        return speed(rate(lambda: next(updates), given), precision, training_cost(size), device)


def kernels(size: Size, given: argparse.Namespace) -> dict[str, float]:
    """Milliseconds of the kernels, or on CPUs operations, that take longest in an update."""
    device = torch.device(given.device)
    kinds = [ProfilerActivity.CPU, ProfilerActivity.CUDA][: 2 if device.type == "cuda" else 1]
    with closing(updates_of("bfloat16", True, size, given)) as updates:
        for _ in range(given.updates):
            next(updates)
        annotated.now(device)
        with profile(activities=kinds) as profiled:
            for _ in range(given.updates):
                next(updates)
            annotated.now(device)
    measure = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
    times = {each.key: getattr(each, measure) for each in profiled.key_averages()}
    longest = sorted(times, key=lambda name: -times[name])[:KERNELS]
    return {name: round(times[name] / 1e3 / given.updates, 3) for name in longest}


def updates_of(
    precision: Precision, eager: bool, size: Size, given: argparse.Namespace
) -> Generator[int, None, None]:
    """Compute updates, read one later as in a training; yields the target tokens of each."""
    system = system_of(size, precision, eager, given)
    group = Group(0, 1, torch.device(given.device))
    torch.manual_seed(1)
    model = Transformer(system.model, VOCABULARY, VOCABULARY).to(group.device).train()
    step = TrainStep(model, system.train, 1, group)
    if eager:
        setattr(step, "_launches_cost", lambda _: False)  # no CUDA graphs  # noqa: B010
    with closing(prefetch(local_updates(corpus(), system, 1, Position(), group))) as updates:
        before = None
        for number, local in enumerate(updates, 1):
            pending = step.update(number, local)
            if before is not None:
                step.read_stats(before)
            before = pending
            yield local.update.tokens


def annotated_style(size: Size, given: argparse.Namespace) -> dict[str, Any]:
    """The Annotated Transformer's way, in float32."""
    torch.set_float32_matmul_precision("highest")
    model = annotated.EncoderDecoder(size.layers, size.d_model, size.d_ff, size.heads, VOCABULARY)
    model = model.to(given.device)
    found = annotated.train(model, size.d_model, corpus(), as_annotated(given))
    return speed(found, "float32", training_cost(size), torch.device(given.device))


def torch_style(size: Size, given: argparse.Namespace) -> dict[str, Any]:
    """torch's nn.Transformer."""
    found = torch_transformer.train(size, VOCABULARY, corpus(), as_annotated(given))
    return speed(found, "bfloat16", training_cost(size), torch.device(given.device))


def as_annotated(given: argparse.Namespace) -> argparse.Namespace:
    torch.manual_seed(1)
    return argparse.Namespace(
        updates=given.updates, seed=1, batch_tokens=given.max_tokens, device=given.device
    )


def loss_alone(size: Size, given: argparse.Namespace) -> dict[str, Any]:
    """The projection to the vocabulary with its loss, and their gradients."""
    device = torch.device(given.device)
    rows: int = given.max_tokens
    on_gpu = device.type == "cuda"
    hidden = torch.randn(rows, size.d_model, device=device, dtype=torch.bfloat16)
    hidden.requires_grad_()
    labels = torch.randint(VOCABULARY, (rows,), device=device)
    projection = Linear(size.d_model, VOCABULARY, bias=False).to(device)
    round_to_bfloat16(projection)

    def own() -> int:
        loss = linear_cross_entropy(hidden, projection, labels, SMOOTHING, compiled=on_gpu)
        torch.autograd.backward(loss)
        return rows

    def plain() -> int:
        with torch.autocast(device.type, torch.bfloat16):
            logits = functional.linear(hidden, projection.weight)
            loss = functional.cross_entropy(
                logits, labels, label_smoothing=SMOOTHING, reduction="sum"
            )
        torch.autograd.backward(loss)
        return rows

    return beside(own, plain, 6 * size.d_model * VOCABULARY, given)


def attention_alone(size: Size, given: argparse.Namespace) -> dict[str, Any]:
    """Causal self-attention of one layer with its projections, and their gradients."""
    device, sentences = torch.device(given.device), max(1, int(given.max_tokens) // LENGTH)
    shape = sentences, LENGTH
    x = torch.randn(*shape, size.d_model, device=device, dtype=torch.bfloat16).requires_grad_()
    packed = can_pack(model_of(size), x.dtype, device)
    starts = torch.arange(0, sentences * LENGTH + 1, LENGTH, device=device, dtype=torch.int32)
    layout = PackedLayout(starts, LENGTH) if packed else PaddedLayout(shape)
    attention = MultiHeadAttention(model_of(size)).to(device)
    round_to_bfloat16(attention)
    multihead = nn.MultiheadAttention(size.d_model, size.heads, batch_first=True).to(device)
    future = torch.ones(LENGTH, LENGTH, dtype=torch.bool, device=device).triu(1)

    def own() -> int:
        y = attention(x.flatten(0, 1) if packed else pad_rows(x), layout, causal=True)
        torch.autograd.backward(y, torch.ones_like(y))
        return sentences * LENGTH

    def plain() -> int:
        with torch.autocast(device.type, torch.bfloat16):
            y, _ = multihead(x, x, x, attn_mask=future, is_causal=True, need_weights=False)
        torch.autograd.backward(y, torch.ones_like(y))
        return sentences * LENGTH

    cost = 3 * (8 * size.d_model**2 + 4 * LENGTH * size.d_model)
    return beside(own, plain, cost, given)


def beside(
    own: Callable[[], int], plain: Callable[[], int], cost: float, given: argparse.Namespace
) -> dict[str, Any]:
    """The speeds of two ways to compute the same in bfloat16."""
    ways, device = {"ours": own, "torch": plain}, torch.device(given.device)
    return {name: speed(rate(way, given), "bfloat16", cost, device) for name, way in ways.items()}


def rate(step: Callable[[], int], given: argparse.Namespace) -> float:
    """Tokens a second; `step` computes and returns some tokens."""
    device = torch.device(given.device)
    for _ in range(given.updates):
        step()
    tokens, steps, began = 0, 0, annotated.now(device)
    while steps < given.updates or time.monotonic() - began < SECONDS:
        tokens, steps = tokens + step(), steps + 1
    return tokens / (annotated.now(device) - began)


def speed(found: float, precision: Precision, cost: float, device: torch.device) -> dict[str, Any]:
    """Tokens a second and MFU; `cost`: FLOPs a token."""
    peak = peak_flops(describe_machine(Group(0, 1, device))["device"], precision)
    return {"tokens_per_second": round(found, 1), "mfu": peak and round(found * cost / peak, 4)}


@cache
def corpus() -> BinaryCorpus:
    """The drawn corpus, in a folder that is removed at the end."""
    scratch = TemporaryDirectory()
    atexit.register(scratch.cleanup)
    return drawn_corpus(Path(scratch.name) / "binary", VOCABULARY, PAIRS)


def training_cost(size: Size) -> float:
    """FLOPs of a training a target token."""
    drawn = corpus()
    lengths = (drawn.side("train", each).lengths[:PRICED].tolist() for each in (SOURCE, TARGET))
    source, target = lengths
    model = model_of(size)
    pairs = zip(source, target, strict=True)
    flops = sum(training_flops(model, VOCABULARY, *pair) for pair in pairs)
    return float(flops / sum(target))


def system_of(size: Size, precision: Precision, eager: bool, given: argparse.Namespace) -> System:
    """The base model of recipe table2 in another size."""
    system = load_settings(ROOT / "recipes" / "table2.yaml").system_settings("base")
    train = replace(
        system.train,
        tokens_per_update=given.max_tokens,
        max_tokens=given.max_tokens,
        precision=precision,
        compile=False if eager else None,
    )
    return replace(system, model=model_of(size), train=train)


def model_of(size: Size) -> Model:
    """The paper's model in this size."""
    return Model(size.layers, size.layers, size.d_model, size.d_ff, size.heads)


FIGURES: dict[str, Figure] = {
    "default": partial(ours, "bfloat16", False),
    "eager": partial(ours, "bfloat16", True),
    "nn.Transformer": torch_style,
    "loss": loss_alone,
    "attention": attention_alone,
    "annotated style": annotated_style,
    "TF32": partial(ours, "tf32", False),
    "float32": partial(ours, "float32", False),
    "profile": kernels,
}
