"""The dry run before a training: whether its largest batches fit into memory.

If they do not, the error names a smaller `max_tokens` that does. Own code is checked before.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from bleuprint.config.system import Model, System, Train
from bleuprint.dataset.batch import PairIds, Sentence
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.packed_batch import TrainingBatch
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD, SPECIALS, UNK
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.distributed.gpus import describe_device_memory
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.errors import UserError
from bleuprint.training.data_loader import batch_class
from bleuprint.training.memory_advice import lower_max_tokens
from bleuprint.training.train_step import OutOfMemory, TrainStep, detect_out_of_memory

# Two outputs that should be equal may differ by so much of the largest output, by rounding.
_TOLERANCE = 1e-3
# What to do if own code mixes positions that it must keep apart.
_REMEDY = (
    "Let attention use only positions where the mask is True, and let all other code compute each "
    "position from itself alone"
)
# The length in tokens of short sentences, which fill a batch without padding.
_SHORT_LENGTH = 16


def dry_run(step: TrainStep, corpus: BinaryCorpus, settings: Train, group: Group) -> None:
    """Check, before a training, that its largest batches fit into memory.

    So the user learns this in the first seconds, not when such a batch is due. The batches are run
    forward and backward; the weights do not change. If the batches do not fit, `max_tokens` is
    halved until they do, so that the error can name a size that fits.

    Args:
        step: The model and its optimizer.
        corpus: The corpus, whose longest sentences make the largest batches.
        settings: The settings of the training.
        group: The processes of the training.

    Raises:
        UserError: The batches do not fit. All processes raise it, even if only one ran out of
            memory. Or own code computes what it must not; then each process finds it by itself.
    """
    check_model(step.model)
    max_tokens = settings.max_tokens
    if _fits(max_tokens, step, corpus, settings, group):
        return
    message = f"the largest batch does not fit into the memory of {group.device}"
    # A batch always has room for the longest sentence, so there are no smaller batches to try.
    longest_sentence = max(_longest_sentences(corpus))
    while max_tokens > longest_sentence:
        max_tokens = max(max_tokens // 2, longest_sentence)
        if _fits(max_tokens, step, corpus, settings, group):
            raise UserError(f"{message}. {lower_max_tokens(settings, max_tokens)}")
    # This also happens on a CPU whose address space is limited, if the heap is fragmented.
    raise UserError(
        f"{message}, nor does a smaller one. {describe_device_memory(group.device)}. "
        f"Lower train.max_tokens ({settings.max_tokens}), filter.length.max or model.d_model "
        f"({step.model.settings.d_model})"
    )


def check_models(systems: Iterable[System]) -> None:
    """Check models with own code by a small batch, long before their trainings start.

    Args:
        systems: The settings of the systems. Models without own code are not created.

    Raises:
        UserError: Own code cannot be imported, fails, or computes what it must not.
    """
    checked = set[Model]()
    for system in systems:
        # One layer of each kind is enough, and needs less memory.
        settings = replace(system.model, encoder_layers=1, decoder_layers=1)
        if not settings.is_built_in and settings not in checked:
            checked.add(settings)
            vocabulary_size = len(SPECIALS)
            check_model(Transformer(settings, vocabulary_size, vocabulary_size))


@torch.no_grad()
def check_model(model: Transformer) -> None:
    """Run a model with own code on a small batch, and check what it must not do.

    A target position must not depend on later tokens: in training, it would see the token that it
    is to predict. And a sentence must not depend on padding, or on other sentences.

    Args:
        model: The model. If all of its parts are built in, nothing is checked.

    Raises:
        UserError: Own code raises an exception, returns another shape or NaN, or the model does
            what it must not do.
    """
    if model.settings.is_built_in:
        return
    was_training = model.training
    dtype = model.activation_dtype
    model.eval()
    model.activation_dtype = None
    try:
        _check_dependencies(model)
    finally:
        model.train(was_training)
        model.activation_dtype = dtype


def _check_dependencies(model: Transformer) -> None:
    """Raise UserError if outputs of a model depend on later tokens, on padding, or are NaN.

    Args:
        model: The model, in evaluation mode.
    """

    def run(source: list[list[int]], target: list[list[int]]) -> Tensor:
        """Return the hidden states of the target positions, (sentences, positions, d_model)."""
        memory, mask = model.encode(torch.tensor(source, device=model.device))
        return model.decode(torch.tensor(target, device=model.device), memory, mask)

    # Each vocabulary has these tokens. Two sentences, the second one shorter in source and target.
    sources = [[UNK, BOS, UNK, EOS], [UNK, EOS, PAD, PAD]]
    targets = [[BOS, UNK, BOS, UNK], [BOS, UNK, PAD, PAD]]
    hidden = run(sources, targets)
    blamed = ", ".join(model.settings.replaced_parts)
    if not bool(torch.isfinite(hidden[0]).all() and torch.isfinite(hidden[1, :2]).all()):
        raise UserError(
            f"{blamed}: the decoder returns NaN or infinity. Look at masks and divisions"
        )
    limit = _TOLERANCE * float(hidden[0].abs().max())
    with_other_end = run(sources, [[BOS, UNK, EOS, EOS], targets[1]])
    if _difference(with_other_end[0, :2], hidden[0, :2]) > limit:
        raise UserError(
            f"{blamed}: the output at a target position depends on later tokens, which translation "
            f"does not have. {_REMEDY}"
        )
    alone = run([sources[1][:2]], [targets[1][:2]])
    if _difference(alone[0], hidden[1, :2]) > limit:
        raise UserError(
            f"{blamed}: the output for a sentence depends on padding or on other sentences of its "
            f"batch. {_REMEDY}"
        )


def _difference(first: Tensor, second: Tensor) -> float:
    """Return the largest difference between two tensors of the same shape."""
    return float((first - second).abs().max())


def _fits(
    max_tokens: int, step: TrainStep, corpus: BinaryCorpus, settings: Train, group: Group
) -> bool:
    """Return whether the largest batches with `max_tokens` tokens fit into memory.

    Args:
        max_tokens: The largest number of tokens of a batch, in place of the one in the settings.
        step: The model and its optimizer.
        corpus: The corpus, whose longest sentences make the largest batches.
        settings: The settings of the training.
        group: The processes of the training.

    Returns:
        Whether the batches fit on all processes. All of them get the same answer.
    """
    longest_source, longest_target = _longest_sentences(corpus)
    # A batch is a part of an update. If updates are measured in tokens, only `max_tokens` limits
    # the number of pairs, each of which has at least one token.
    max_pairs = settings.sentences_per_update or max_tokens
    batch_type = batch_class(step.model.settings, settings, group.device)
    largest_batches = _largest_batches(max_tokens, max_pairs, longest_source, longest_target)
    fits_here = all(_can_run(step, batch_type.from_ids(pairs)) for pairs in largest_batches)
    if not fits_here:
        # Libraries such as cuBLAS allocate memory on the device by themselves, and need room.
        step.free()
    is_too_large_anywhere = group.any(not fits_here)
    return not is_too_large_anywhere


def _longest_sentences(corpus: BinaryCorpus) -> tuple[int, int]:
    """Return the lengths in tokens of the longest source and the longest target sentence."""
    longest_source = corpus.side("train", corpus.source).longest
    longest_target = corpus.side("train", corpus.target).longest
    return longest_source, longest_target


def _largest_batches(
    max_tokens: int, max_pairs: int, longest_source: int, longest_target: int
) -> Iterator[PairIds]:
    """Yield the two batches that need the most memory.

    The first one consists of the longest sentences, for which attention needs the most memory. The
    second one consists of many short sentences. It has hardly any padding, and so the most target
    tokens, for which the projection to the vocabulary needs the most memory.

    Args:
        max_tokens: The largest number of positions of a batch, padding included, in the source and
            in the target.
        max_pairs: The largest number of sentence pairs of a batch.
        longest_source: The length of the longest source sentence.
        longest_target: The length of the longest target sentence.
    """
    short_length = min(_SHORT_LENGTH, longest_source, longest_target)
    yield _uniform_batch(max_tokens, max_pairs, longest_source, longest_target)
    yield _uniform_batch(max_tokens, max_pairs, short_length, short_length)


def _uniform_batch(
    max_tokens: int, max_pairs: int, source_length: int, target_length: int
) -> PairIds:
    """Return the largest allowed batch in which all sentence pairs have the same lengths.

    All tokens are EOS: the memory that a batch needs does not depend on them.

    Args:
        max_tokens: The largest number of positions of a batch, in the source and in the target.
        max_pairs: The largest number of sentence pairs of a batch.
        source_length: The length of each source sentence in tokens.
        target_length: The length of each target sentence in tokens.
    """
    longer_side = max(source_length, target_length)
    # A batch has at least one pair, even if that is longer than `max_tokens`.
    pair_count = max(1, min(max_tokens // longer_side, max_pairs))
    sources: list[Sentence] = [[EOS] * source_length for _ in range(pair_count)]
    # One source is shorter, so that the batch has padding: some kernels need more memory then.
    sources[0] = [EOS] * max(1, source_length - 1)
    targets: list[Sentence] = [[EOS] * target_length] * pair_count
    return PairIds(sources, targets)


def _can_run(step: TrainStep, batch: TrainingBatch) -> bool:
    """Return whether a batch can be run forward and backward without running out of memory."""
    model = step.model.train()
    # LayerDrop would skip some layers at random, but all layers must fit at once.
    layer_drop = model.layer_drop
    model.layer_drop = 0.0
    try:
        with detect_out_of_memory():
            # The numbers do not matter: the gradient is thrown away.
            step.accumulate_gradient([batch], number=1, index=0, tokens=1)
    except OutOfMemory:
        return False
    finally:
        model.layer_drop = layer_drop
        step.optimizer.zero_grad()
    return True
