"""What to do if a batch does not fit into memory, and what that changes."""

from bleuprint.config.system import Train


def lower_max_tokens(train: Train, fitting: int | None = None) -> str:
    """Return the advice to lower `max_tokens`, for the end of a message.

    Whether another `max_tokens` changes the experiment depends on how updates are counted. Updates
    of `sentences_per_update` are drawn first and then divided into batches, so they keep their
    sentences. Updates of `tokens_per_update` are put together from batches, whose sentences depend
    on `max_tokens`: another value is another experiment.

    Args:
        train: The settings of the training that ran out of memory.
        fitting: A size that fits, if it is known.
    """
    which_fits = f" to {fitting}, which fits" if fitting is not None else ""
    advice = f"lower train.max_tokens ({train.max_tokens}){which_fits}"
    if train.sentences_per_update is not None:
        return f"{advice}; updates keep their sentences, and train.sentences_per_update may stay"
    return (
        f"{advice}; train.tokens_per_update may stay. Updates will have other sentences: to "
        "compare systems, lower it for all of them"
    )
