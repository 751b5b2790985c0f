"""The dry run before a training: whether its largest batches fit into memory.

If they do not, the error names a smaller `max_tokens` that does.
"""

from collections.abc import Iterator

from bleuprint.config.system import Train
from bleuprint.dataset.batch import PairIds, Sentence
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.packed_batch import TrainingBatch
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.runtime.distributed.gpus import describe_device_memory
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.errors import UserError
from bleuprint.training.data_loader import batch_class
from bleuprint.training.memory_advice import lower_max_tokens
from bleuprint.training.train_step import OutOfMemory, TrainStep, detect_out_of_memory

# The length in tokens of short sentences, which fill a batch without padding.
_SHORT_LENGTH = 16


def dry_run(step: TrainStep, corpus: BinaryCorpus, settings: Train, group: Group) -> None:
    """Check, before a training, that its largest batches fit into memory.

    They are run forward and backward; the weights do not change. If they do not fit, `max_tokens`
    is halved until they do, so that the error can name a size that fits.

    Args:
        step: The model and its optimizer.
        corpus: The corpus, whose longest sentences make the largest batches.
        settings: The settings of the training.
        group: The processes of the training.

    Raises:
        UserError: The batches do not fit. All processes raise it, even if only one ran out of
            memory.
    """
    longest_source = int(corpus.side("train", corpus.source).lengths.max())
    longest_target = int(corpus.side("train", corpus.target).lengths.max())
    longest = max(longest_source, longest_target)
    max_pairs = settings.sentences_per_update or settings.max_tokens
    batch_type = batch_class(step.model.settings, settings, group.device)

    def fits(max_tokens: int) -> bool:
        """Return whether batches of `max_tokens` positions fit into memory, on all processes."""
        largest_batches = _largest_batches(max_tokens, max_pairs, longest_source, longest_target)
        fits_here = all(_can_run(step, batch_type.from_ids(pairs)) for pairs in largest_batches)
        if not fits_here:
            # Libraries such as cuBLAS allocate memory on the device by themselves, and need room.
            step.free()
        is_too_large_anywhere = group.any(not fits_here)
        return not is_too_large_anywhere

    max_tokens = settings.max_tokens
    if fits(max_tokens):
        return
    message = f"the largest batch does not fit into the memory of {group.device}"
    # A batch has room for any sentence, so a size below the longest sentence is never tried.
    while max_tokens > longest:
        max_tokens = max(max_tokens // 2, longest)
        if fits(max_tokens):
            raise UserError(f"{message}: {lower_max_tokens(settings, max_tokens)}")
    # This also happens on a CPU whose address space is limited, if the heap is fragmented.
    raise UserError(
        f"{message}, and no smaller one fits ({describe_device_memory(group.device)}): "
        f"lower train.max_tokens ({settings.max_tokens}), filter.length.max or model.d_model "
        f"({step.model.settings.d_model})"
    )


def _largest_batches(
    max_tokens: int, max_pairs: int, longest_source: int, longest_target: int
) -> Iterator[PairIds]:
    """Yield the two kinds of batches that need the most memory.

    Attention needs the most memory for a batch of the longest sentences. The projection to the
    vocabulary needs the most memory for a batch of many short sentences, which has hardly any
    padding, and so the most target tokens.

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
    pair_count = min(max_tokens // longer_side, max_pairs)
    pair_count = max(1, pair_count)
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
            step.accumulate_gradient([batch], number=1, index=0, tokens=1)
    except OutOfMemory:
        return False
    finally:
        model.layer_drop = layer_drop
        step.optimizer.zero_grad()
    return True
