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
    """Run the batches that need the most memory forward and backward; the weights do not change.

    Args:
        step: The model and its optimizer.
        corpus: The corpus, whose longest sentences make the largest batches.
        settings: The settings of the training.
        group: The processes of the training.

    Raises:
        UserError: On all processes, if one of them runs out of memory. It names a `max_tokens` that
            fits, which is found by halving.
    """
    longest_source = int(corpus.side("train", corpus.source).lengths.max())
    longest_target = int(corpus.side("train", corpus.target).lengths.max())
    longest = max(longest_source, longest_target)
    max_pairs = settings.sentences_per_update or settings.max_tokens
    batch_type = batch_class(step.model.settings, settings, group.device)

    def fits(max_tokens: int) -> bool:
        """Return whether the largest batches of this size fit on all processes."""
        largest_batches = _largest_batches(max_tokens, max_pairs, longest_source, longest_target)
        fits_here = all(_fits(step, batch_type.from_ids(pairs)) for pairs in largest_batches)
        if not fits_here:
            # cuBLAS and other libraries allocate on the device by themselves, and need room.
            step.free()
        return not group.any(not fits_here)

    max_tokens = settings.max_tokens
    if fits(max_tokens):
        return
    message = f"the largest batch does not fit into the memory of {group.device}"
    # A batch must hold each sentence, so no smaller size than the longest one is tried.
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
    """Yield the batches that need the most memory.

    Attention needs the most memory for the longest sentences, and the projection to the vocabulary
    for many short sentences, because they have no padding.

    Args:
        max_tokens: The largest number of positions of a batch on either side.
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
    """Return a batch of as many sentence pairs of given lengths as fit; all tokens are EOS."""
    longer_side = max(source_length, target_length)
    pair_count = min(max_tokens // longer_side, max_pairs)
    pair_count = max(1, pair_count)
    sources: list[Sentence] = [[EOS] * source_length for _ in range(pair_count)]
    # One source is shorter, so that the batch has padding: some kernels need more memory then.
    sources[0] = [EOS] * max(1, source_length - 1)
    targets: list[Sentence] = [[EOS] * target_length] * pair_count
    return PairIds(sources, targets)


def _fits(step: TrainStep, batch: TrainingBatch) -> bool:
    """Return whether a batch can be run forward and backward through all layers."""
    model = step.model.train()
    # LayerDrop would leave layers out at random.
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
