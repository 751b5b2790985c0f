"""Advice on `train.max_tokens`, the size of a batch, for messages.

A batch may be too large for the memory, or so large that an update has too few of them.
"""

import numpy as np

from bleuprint.config.system import Train
from bleuprint.dataset.binarized import BinaryCorpus

# Batches are never full. If max_tokens is a tenth above the tokens of an update for each process,
# most of the time each process has one batch; if it is a quarter above, some processes have none.
_ENOUGH_TOKENS_FACTOR = 1.1
_TOO_MANY_TOKENS_FACTOR = 1.25


def lower_max_tokens(train: Train, fitting: int | None = None) -> str:
    """Return the advice to lower `max_tokens`, the largest number of tokens in a batch.

    The advice follows a message that a batch does not fit into memory. It consists of sentences,
    and also says whether a lower `max_tokens` changes the result:

    - With `sentences_per_update`, it does not. The sentences of an update are drawn first, and then
      divided into batches.
    - With `tokens_per_update`, it does. Batches are made first, and updates consist of batches. So
      with other batches, other sentences come together in an update.

    Args:
        train: The settings of the training that ran out of memory.
        fitting: A value of `max_tokens` that fits; None if none is known.
    """
    which_fits = f" to {fitting}, which fits" if fitting is not None else ""
    advice = f"Lower train.max_tokens ({train.max_tokens}){which_fits}"
    if train.sentences_per_update is not None:
        return f"{advice}. Keep train.sentences_per_update: updates then keep their sentences"
    return (
        f"{advice}. You can keep train.tokens_per_update. Updates will contain different "
        "sentences: to compare systems, lower train.max_tokens for all of them"
    )


def warning_of_idle_processes(settings: Train, corpus: BinaryCorpus, processes: int) -> str | None:
    """Return a warning if an update has fewer batches than there are processes.

    Processes train together by computing different batches of the same update. If there are too few
    batches, some processes have nothing to do. The warning names a lower `max_tokens`, with which
    each process has a batch.

    Args:
        settings: The settings of the training.
        corpus: The corpus of the training.
        processes: The number of processes that train together.

    Returns:
        The warning; None if there are enough batches.
    """
    if processes == 1:
        return None
    if settings.sentences_per_update is not None:
        source = corpus.side("train", corpus.source)
        target = corpus.side("train", corpus.target)
        longer_sides = 0
        for lengths in zip(source.length_parts(), target.length_parts(), strict=True):
            longer_sides += int(np.maximum(*lengths).sum())
        update_tokens = settings.sentences_per_update * longer_sides / len(source)
        # A lower max_tokens does not change which sentences an update has.
        effect = ""
    else:
        assert settings.tokens_per_update is not None
        update_tokens = settings.tokens_per_update
        # These updates consist of batches, whose sentences depend on max_tokens.
        effect = ". Updates will then contain different sentences"
    # An update has too few batches if one full batch for each process would be more tokens than the
    # update has. Batches are rarely full, so the limit is multiplied by a factor.
    are_some_idle = settings.max_tokens * processes > _TOO_MANY_TOKENS_FACTOR * update_tokens
    if not are_some_idle:
        return None
    enough_tokens = _ENOUGH_TOKENS_FACTOR * update_tokens / processes
    return (
        f"updates of {update_tokens:,.0f} tokens have fewer batches of train.max_tokens "
        f"({settings.max_tokens}) than there are processes ({processes}), so some processes are "
        f"idle. Lower train.max_tokens to {enough_tokens:.0f}, which gives each process a batch"
        f"{effect}"
    )
