"""Learning SentencePiece models and their vocabularies from the training text.

SentencePiece holds the lines that it learns from in memory, of which there are at most _MAX_LINES.
"""

import io
import re
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from bleuprint.config.corpus import SentencePiece
from bleuprint.dataset.count_units import Splitter, count_units
from bleuprint.dataset.subwords.segmentation import MODEL
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, Vocabulary
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.progress import track
from bleuprint.text.parallel import TextFolder, read_lines

# A model is learned from every n-th line of train, such that there are at most this many.
_MAX_LINES = 5_000_000
_SPECIALS = {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK}


def learn_sentencepiece(
    corpus: str, settings: SentencePiece, tokens: TextFolder, folder: Path, workers: int = 1
) -> None:
    """Write sentencepiece.LANGUAGE and vocabulary.LANGUAGE of both languages into `folder`.

    The vocabulary has the pieces in the order of their ids, and how often each occurs in train.
    Raises UserError if a vocabulary of `settings.vocab_size` cannot be learned.
    """
    languages = dict(zip(tokens.languages, tokens.files("train"), strict=True))
    groups = [list(languages)] if settings.joint else [[language] for language in languages]
    for group in groups:
        files = [languages[language] for language in group]
        step = max(1, -(-tokens.count("train") * len(files) // _MAX_LINES))
        lines = chain.from_iterable(islice(read_lines(file), 0, None, step) for file in files)
        what = f"learn_vocabulary {corpus} {'+'.join(group)}"
        model = learn_model(corpus, settings, track(lines, what, None, "lines"))
        for language in group:
            (folder / f"{MODEL}.{language}").write_bytes(model)
    splitter = partial(_piece_splitter, folder)
    counts = count_units(f"count pieces {corpus}", tokens, workers, splitter)
    for group in groups:
        count = sum((counts[language] for language in group), Counter[int]())
        pieces = SentencePieceProcessor(model_file=str(folder / f"{MODEL}.{group[0]}"))
        entries = [(pieces.id_to_piece(i), count[i]) for i in range(len(pieces))]
        for language in group:
            Vocabulary(entries[len(SPECIALS) :]).write(folder / f"vocabulary.{language}")


def learn_model(
    corpus: str, settings: SentencePiece, lines: Iterable[str], is_limit: bool = False
) -> bytes:
    """Return the model that SentencePiece learns from lines, always the same from the same lines.

    Special tokens have our ids and names. The text is not normalized. One thread: with more, sums
    are rounded otherwise and pieces differ.

    Args:
        corpus: the name of the corpus, for messages.
        settings: the kind and number of pieces.
        lines: the training text of the model.
        is_limit: whether the model may have fewer pieces than `settings.vocab_size`, as many as the
            text has evidence for.

    Raises:
        UserError: a vocabulary of `settings.vocab_size` cannot be learned.
    """
    model = io.BytesIO()
    special: dict[str, Any] = {f"{name}_id": i for name, i in _SPECIALS.items()}
    special |= {f"{name}_piece": SPECIALS[i] for name, i in _SPECIALS.items()}
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type=settings.model_type,
            vocab_size=settings.vocab_size,
            hard_vocab_limit=not is_limit,
            byte_fallback=settings.byte_fallback,
            normalization_rule_name="identity",
            max_sentence_length=2**30,  # bytes; longer lines would be left out without a word
            **special,
            unk_surface=SPECIALS[UNK],
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        # "INTERNAL: FILE(LINE) [CONDITION] MESSAGE", and an advice that is no setting here
        message = re.sub(r"^.*\] | Increase vocab_size.*", "", str(error).replace("\n", " "))
        raise UserError(
            f"corpora.{corpus}.vocabulary.sentencepiece.vocab_size is {settings.vocab_size}: "
            f"SentencePiece cannot learn it: {message.strip() or 'train has no text'}"
        ) from None
    return model.getvalue()


def _piece_splitter(folder: Path, language: str) -> Splitter[int]:
    pieces = SentencePieceProcessor(model_file=str(folder / f"{MODEL}.{language}"))
    return lambda lines: chain.from_iterable(map(pieces.encode, lines))
