"""The dry run before a training: whether its largest batches fit into memory, and which would."""

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
_SHORT = 16


def dry_run(step: TrainStep, corpus: BinaryCorpus, settings: Train, group: Group) -> None:
    """Run the batches that take the most memory forward and backward; the weights do not change.

    Raises UserError, on all processes, if one of them runs out of memory: it names a `max_tokens`
    that fits, found by halving.
    """
    kind = batch_class(step.model.settings, settings, group.device)
    languages = (corpus.source, corpus.target)
    longest = [int(corpus.side("train", language).lengths.max()) for language in languages]

    most = settings.sentences_per_update or settings.max_tokens

    def fits(max_tokens: int) -> bool:
        largest = _largest(max_tokens, most, *longest)
        own = all(_fits(step, kind.from_ids(each)) for each in largest)
        if not own:
            step.free()  # cuBLAS and others allocate there as well
        return not group.any(not own)

    lower = settings.max_tokens
    if fits(lower):
        return
    what = f"the largest batch does not fit into the memory of {group.device}"
    while lower > max(longest):  # a batch must hold each sentence
        lower = max(lower // 2, *longest)
        if fits(lower):
            raise UserError(f"{what}: {lower_max_tokens(settings, lower)}")
    # on a CPU whose address space is limited, perhaps because the heap is fragmented
    raise UserError(
        f"{what}, and no smaller one fits ({describe_device_memory(group.device)}): "
        f"lower train.max_tokens ({settings.max_tokens}), filter.length.max or model.d_model "
        f"({step.model.settings.d_model})"
    )


def _largest(max_tokens: int, most: int, source: int, target: int) -> Iterator[PairIds]:
    """The batches that take the most memory, of at most `most` pairs of at most `source` and
    `target` tokens.

    Attention takes the most memory for the longest sentences, the projection to the vocabulary for
    sentences without padding.
    """
    short = min(_SHORT, source, target)
    for length, target_length in ((source, target), (short, short)):
        pairs = max(1, min(max_tokens // max(length, target_length), most))
        sources: list[Sentence] = [[EOS] * length for _ in range(pairs)]
        sources[0] = [EOS] * max(1, length - 1)  # some kernels differ with padding
        yield PairIds(sources, [[EOS] * target_length] * pairs)


def _fits(step: TrainStep, batch: TrainingBatch) -> bool:
    """Whether the batch, with all layers, can be run forward and backward."""
    model = step.model.train()
    layer_drop, model.layer_drop = model.layer_drop, 0.0
    try:
        with detect_out_of_memory():
            step.accumulate_gradient([batch], number=1, index=0, tokens=1)
    except OutOfMemory:
        return False
    finally:
        model.layer_drop = layer_drop
        step.optimizer.zero_grad()
    return True
