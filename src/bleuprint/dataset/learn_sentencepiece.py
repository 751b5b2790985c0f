"""Learning SentencePiece models and their vocabularies from the training text.

SentencePiece holds the lines that it learns from in memory: at most _MAX_LINES.
"""

import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from bleuprint.config.corpus import SentencePiece
from bleuprint.dataset.count_units import Splitter, count_units
from bleuprint.dataset.pretrained_pieces import copy_pretrained_pieces
from bleuprint.dataset.subwords.segmentation import MODEL
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, Vocabulary
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.progress import track
from bleuprint.text.parallel import TextFolder, read_lines

# A model is learned from every n-th line of the training text, with the smallest n that gives at
# most this many lines.
_MAX_LINES = 5_000_000
# The longest line in bytes that SentencePiece reads. It ignores longer lines without a message, and
# its default is 4,192: this limit is longer than any line.
_MAX_LINE_BYTES = 2**30
# Our ids of the special tokens, by the names that SentencePiece has for these tokens.
_SPECIAL_IDS = {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK}


def learn_sentencepiece(
    corpus: str, settings: SentencePiece, tokens: TextFolder, folder: Path, workers: int = 1
) -> None:
    """Learn how SentencePiece splits both languages, and write its models and vocabularies.

    Writes sentencepiece.LANGUAGE and vocabulary.LANGUAGE. A vocabulary lists the pieces in the
    order of their ids, and how often each occurs in the training text. With joint vocabularies,
    both languages have the same model and vocabulary. If the settings name the folder of a
    pretrained model, its pieces are copied instead.

    Args:
        corpus: The name of the corpus, for messages.
        settings: The type and number of pieces.
        tokens: The tokenized text.
        folder: The folder to write into.
        workers: The number of processes that count pieces.

    Raises:
        UserError: A vocabulary of `settings.vocab_size` cannot be learned, or the folder of a
            pretrained model lacks its pieces.
    """
    if settings.folder is not None:
        copy_pretrained_pieces(corpus, settings, tokens.languages, folder)
        return
    # Languages that share a model are in one group.
    groups = language_groups(tokens.languages, settings.joint)
    for languages in groups:
        model = _learn_shared_model(corpus, settings, tokens, languages)
        for language in languages:
            (folder / f"{MODEL}.{language}").write_bytes(model)
    splitter_for = partial(_piece_splitter, folder)
    counts = count_units(f"count pieces {corpus}", tokens, workers, splitter_for)
    for languages in groups:
        vocabulary = _piece_vocabulary(folder, languages, counts)
        for language in languages:
            vocabulary.write(folder / f"vocabulary.{language}")


def language_groups(languages: Sequence[str], is_joint: bool) -> list[list[str]]:
    """Group languages by the vocabulary that they share: all in one group, or each in its own.

    Args:
        languages: The source and the target language.
        is_joint: Whether they share one vocabulary.
    """
    if is_joint:
        return [list(languages)]
    return [[language] for language in languages]


def _learn_shared_model(
    corpus: str, settings: SentencePiece, tokens: TextFolder, languages: Sequence[str]
) -> bytes:
    """Learn the SentencePiece model of one language, or of both together, from the training text.

    SentencePiece holds all lines in memory. So only a part of a large text is read, evenly spread
    over the text: every second line, every third, and so on.

    Args:
        corpus: The name of the corpus, for messages.
        settings: The type and number of pieces.
        tokens: The tokenized text.
        languages: The languages that share the model.
    """
    file_by_language = dict(zip(tokens.languages, tokens.files("train"), strict=True))
    files = [file_by_language[language] for language in languages]
    total_lines = tokens.count("train") * len(files)
    step = max(1, math.ceil(total_lines / _MAX_LINES))
    progress_name = f"learn_vocabulary {corpus} {'+'.join(languages)}"
    lines = track(_every_nth_line(files, step), progress_name, None, "lines")
    return learn_model(corpus, settings, lines)


def _every_nth_line(files: Iterable[Path], step: int) -> Iterator[str]:
    """Yield every `step`-th line of each file, from its first line on."""
    for file in files:
        yield from islice(read_lines(file), 0, None, step)


def learn_model(
    corpus: str, settings: SentencePiece, lines: Iterable[str], is_limit: bool = False
) -> bytes:
    """Learn a SentencePiece model from lines; the same lines always give the same model.

    The model contains our special tokens, such as EOS, with our ids. The text is not normalized.

    Args:
        corpus: The name of the corpus, for messages.
        settings: The type and number of pieces.
        lines: The text to learn from.
        is_limit: What to do if the text is too small for `settings.vocab_size` pieces: True learns
            fewer pieces, False fails.

    Returns:
        The content of the model's file.

    Raises:
        UserError: A vocabulary of `settings.vocab_size` cannot be learned.
    """
    model = io.BytesIO()
    special_tokens: dict[str, Any] = {}
    for name, token_id in _SPECIAL_IDS.items():
        special_tokens[f"{name}_id"] = token_id
        special_tokens[f"{name}_piece"] = SPECIALS[token_id]
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type=settings.model_type,
            vocab_size=settings.vocab_size,
            hard_vocab_limit=not is_limit,
            byte_fallback=settings.byte_fallback,
            normalization_rule_name="identity",
            max_sentence_length=_MAX_LINE_BYTES,
            **special_tokens,
            unk_surface=SPECIALS[UNK],
            # With several threads, sums are rounded differently, and the pieces differ.
            num_threads=1,
            # Only errors are logged: SentencePiece would print its progress.
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _learning_error(corpus, settings, str(error)) from None
    return model.getvalue()


def _learning_error(corpus: str, settings: SentencePiece, message: str) -> UserError:
    """Turn an error message of SentencePiece into an error that names our setting.

    SentencePiece's message has the form "INTERNAL: FILE(LINE) [CONDITION] REASON ADVICE". Only the
    reason is shown: the advice names an option of SentencePiece, which our users do not set.

    Args:
        corpus: The name of the corpus.
        settings: The type and number of pieces.
        message: SentencePiece's message.
    """
    one_line = message.replace("\n", " ")
    before_reason = r"^.*\] "
    advice = " Increase vocab_size.*"
    reason = re.sub(f"{before_reason}|{advice}", "", one_line).strip()
    return UserError(
        f"corpora.{corpus}.vocabulary.sentencepiece.vocab_size is {settings.vocab_size}, "
        f"but SentencePiece cannot learn such a vocabulary: {reason or 'train has no text'}"
    )


def _piece_splitter(folder: Path, language: str) -> Splitter[int]:
    """Return a function that splits lines of a language into pieces, and yields the pieces' ids.

    Args:
        folder: The folder of the models.
        language: The language, whose model is read.
    """
    model = SentencePieceProcessor(model_file=str(folder / f"{MODEL}.{language}"))

    def split(lines: Iterable[str]) -> Iterator[int]:
        """Yield the ids of the pieces of all lines."""
        for line in lines:
            yield from model.encode(line)

    return split


def _piece_vocabulary(
    folder: Path, languages: Sequence[str], counts: dict[str, Counter[int]]
) -> Vocabulary:
    """Create the vocabulary of a SentencePiece model: its pieces, and how often each occurs.

    Args:
        folder: The folder of the models.
        languages: The languages that share the model.
        counts: How often each piece id occurs in the training text, by language.
    """
    total_counts = Counter[int]()
    for language in languages:
        total_counts.update(counts[language])
    # The languages share the model, so any of their files will do.
    model = SentencePieceProcessor(model_file=str(folder / f"{MODEL}.{languages[0]}"))
    # Leave out the special tokens, which come first in the model: Vocabulary adds them itself.
    entries = []
    for piece_id in range(len(SPECIALS), len(model)):
        entries.append((model.id_to_piece(piece_id), total_counts[piece_id]))
    return Vocabulary(entries)
