"""Measurements of a user's text for the command new-corpus, after its rules were tried."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.wording import join_with_and

if TYPE_CHECKING:
    from bleuprint.corpus.inspect import Inspection
    from bleuprint.corpus.new_corpus import NewCorpus
    from bleuprint.dataset.fitted_pieces import FittedPieces
    from bleuprint.text.parallel import TextFolder
    from bleuprint.training.fitted_systems import TextSize

# The number of pairs on which the cleaning and filtering rules are tried. From a longer text this
# many are sampled, so that the command takes minutes at most.
_SAMPLED_PAIRS = 100_000
_SAMPLING_SEED = 1


@dataclass(frozen=True)
class RemainingPairs:
    """The number of pairs in each set that remain after the rules of a corpus.

    Attributes:
        train: The training pairs.
        valid: The validation pairs.
        test: The test pairs.
    """

    train: int
    valid: int
    test: int

    @property
    def total(self) -> int:
        """The number of pairs in all sets."""
        return self.train + self.valid + self.test


@dataclass(frozen=True)
class MeasuredCorpus:
    """A new corpus, and what was measured of its text.

    Attributes:
        new_corpus: The corpus, with the size of its vocabulary.
        inspection: What the rules drop.
        remaining: The numbers of pairs that remain.
        text: The size of the training text, from which the sizes of systems are chosen.
        bleu_ceiling: The BLEU that a perfect translation of the test set reaches, as the end of a
            message; None if it is 100.
    """

    new_corpus: "NewCorpus"
    inspection: "Inspection"
    remaining: RemainingPairs
    text: "TextSize"
    bleu_ceiling: str | None


def measure_corpus(new_corpus: "NewCorpus") -> MeasuredCorpus:
    """Prepare a sample of a new corpus as the pipeline would, and measure the prepared text.

    The measurements tell the user how much text remains after cleaning and filtering, and they
    decide how large a vocabulary fits. The stages write to a temporary folder, which is removed at
    the end.

    Raises:
        UserError: The rules leave nothing to train or test on.
    """
    from bleuprint.training.fitted_systems import TextSize

    with _scratch_folder() as scratch:
        # If a rule does not fit the text, `tried.new_corpus` is the corpus without it.
        tried = _try_rules(new_corpus, scratch)
        if tried.new_corpus.language_note:
            print_message(tried.new_corpus.language_note, "note")
        remaining = _remaining_pairs(tried.new_corpus, tried.inspection)
        subwords = _fit_subwords(tried.new_corpus, tried.folder)
        bleu_ceiling = _bleu_ceiling(tried.new_corpus, tried.folder)
    text = TextSize(
        pairs=remaining.train,
        source_length=subwords.source_length,
        target_length=subwords.target_length,
        vocabulary_size=subwords.size,
    )
    return MeasuredCorpus(
        new_corpus=replace(tried.new_corpus, vocab_size=subwords.size),
        inspection=tried.inspection,
        remaining=remaining,
        text=text,
        bleu_ceiling=bleu_ceiling,
    )


@dataclass(frozen=True)
class _TriedRules:
    """A new corpus after its cleaning and filtering rules were tried on a sample of its text.

    Attributes:
        new_corpus: The corpus.
        inspection: What the rules dropped.
        folder: The folder with the outputs of the stages that applied the rules.
    """

    new_corpus: "NewCorpus"
    inspection: "Inspection"
    folder: Path


@contextmanager
def _scratch_folder() -> Iterator[Path]:
    """Create a temporary folder for a `with` block, and remove it after the block.

    It is on the disk of the project, since the folder /tmp may be too small for a text.
    """
    work = environment.work_folder()
    work.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=work, prefix="new-corpus-") as folder:
        yield Path(folder)


def _try_rules(new_corpus: "NewCorpus", scratch: Path) -> _TriedRules:
    """Try the cleaning and filtering rules, and omit language identification if it does not fit.

    The filter language_id drops pairs that are not in the expected languages. It cannot identify
    the language of a text of names and numbers, and would drop nearly all of it. If too few pairs
    remain because of this filter, the corpus is returned without the filter, and with a note.

    Args:
        new_corpus: The new corpus, with all rules.
        scratch: The folder for the outputs of the stages.
    """
    inspection = _prepare_sample(new_corpus, scratch)
    tried = _TriedRules(new_corpus, inspection, scratch)
    is_filter_to_blame = _leaves_too_few(inspection) and _language_id_drops(inspection) > 0
    if not is_filter_to_blame:
        return tried
    # Try again without the filter.
    new_without_filter = replace(
        new_corpus,
        has_language_id=False,
        language_note=_note_on_omitted_language_id(new_corpus, inspection),
    )
    other_folder = scratch / "without-language-id"
    inspection_without_filter = _prepare_sample(new_without_filter, other_folder)
    if inspection_without_filter.failure:
        return tried  # Even without the filter, too few pairs remain.
    return _TriedRules(new_without_filter, inspection_without_filter, other_folder)


def _prepare_sample(new_corpus: "NewCorpus", scratch: Path) -> "Inspection":
    """Run the stages that prepare a text on a sample of the new corpus.

    Args:
        new_corpus: The new corpus, with its cleaning and filtering rules.
        scratch: The folder below which the stages write their outputs.

    Returns:
        How many pairs each rule drops, and how many remain.
    """
    from bleuprint.corpus.download.download import Sample
    from bleuprint.corpus.download.fetch import downloads_of_environment
    from bleuprint.corpus.inspect import prepare_sample

    return prepare_sample(
        new_corpus.name,
        new_corpus.corpus,
        Sample(_SAMPLED_PAIRS, _SAMPLING_SEED),
        downloads_of_environment(),
        scratch,
        environment.worker_count(),
    )


def _note_on_omitted_language_id(new_corpus: "NewCorpus", inspection: "Inspection") -> str:
    """Return a note that the entry of the corpus omits the filter language_id, and why.

    Args:
        new_corpus: The new corpus.
        inspection: What the rules drop with this filter.
    """
    dropped_pairs = _language_id_drops(inspection)
    read_pairs = inspection.stages["filter"].pairs_in
    note = (
        f"{join_with_and(new_corpus.files)}: the filter language_id would drop "
        f"{dropped_pairs:,} of {read_pairs:,} pairs, so the entry omits it. Check that "
        f"the text is in {join_with_and(new_corpus.languages)}"
    )
    if not new_corpus.has_given_languages:
        note += ". If it is not, remove the entry and add: --languages SOURCE TARGET"
    return note


def _language_id_drops(inspection: "Inspection") -> int:
    """Return how many sentence pairs the filter language_id drops: pairs in another language."""
    if "filter" not in inspection.stages:
        return 0
    return inspection.stages["filter"].dropped.get("language_id", 0)


def _leaves_too_few(inspection: "Inspection") -> bool:
    """Return whether too few sentence pairs remain for the filter language_id to be used.

    Too few remain if they cannot be divided into a training, a validation and a test set; or if the
    filter drops more than half of the pairs, and fewer than MIN_PAIRS remain.
    """
    from bleuprint.corpus.new_corpus import MIN_PAIRS

    if inspection.failure:  # The pairs could not be divided into the three sets.
        return True
    read_pairs = inspection.stages["filter"].pairs_in
    drops_more_than_half = _language_id_drops(inspection) > read_pairs / 2
    remaining_pairs = sum(inspection.sets.values())
    return drops_more_than_half and remaining_pairs < MIN_PAIRS


def _remaining_pairs(new_corpus: "NewCorpus", inspection: "Inspection") -> RemainingPairs:
    """Return how many sentence pairs the rules leave for training, validation and test.

    Args:
        new_corpus: The new corpus.
        inspection: What its rules drop. Its test sets have names such as `test.own`.

    Raises:
        UserError: The rules leave nothing to train or test on.
    """
    if inspection.failure:
        names = join_with_and(new_corpus.files)
        raise UserError(
            f"{names}: the rules leave too few of the {new_corpus.pairs:,} pairs to train, "
            f"validate and test on: {inspection.failure}. Look at the languages, "
            "the columns and the text"
        )
    test_pairs = 0
    for set_name, pairs in inspection.sets.items():
        if set_name.startswith("test."):
            test_pairs += pairs
    return RemainingPairs(
        train=inspection.sets["train"],
        valid=inspection.sets["valid"],
        test=test_pairs,
    )


def _fit_subwords(new_corpus: "NewCorpus", scratch: Path) -> "FittedPieces":
    """Learn a subword vocabulary whose size fits the training text, and measure the text with it.

    Args:
        new_corpus: The new corpus.
        scratch: The folder in which the stages have prepared its text.
    """
    from bleuprint.dataset.fitted_pieces import fitted_pieces

    training_text = _split_text(new_corpus, scratch)
    return fitted_pieces(
        new_corpus.name, new_corpus.corpus, training_text, max_size=new_corpus.max_vocab_size
    )


def _bleu_ceiling(new_corpus: "NewCorpus", scratch: Path) -> str | None:
    """Describe the BLEU that a perfect translation of the test set reaches, and how to raise it.

    Some preparation cannot be undone in the translations, such as lowercasing. Then even a perfect
    translation differs from the reference, and scores below 100.

    Args:
        new_corpus: The new corpus.
        scratch: The folder in which the stages have prepared its text.

    Returns:
        The end of a message that begins with "BLEU ceiling of the test set is"; None if a perfect
        translation scores 100.
    """
    from bleuprint.corpus.split import DRAWN_TEST_SET
    from bleuprint.scoring.bleu_ceiling import describe_low_ceiling

    test_pairs = _split_text(new_corpus, scratch).pairs(DRAWN_TEST_SET)
    references = [pair.target for pair in test_pairs]
    try:
        return describe_low_ceiling(references, new_corpus.corpus, has_test_files=False)
    except UserError as error:  # BLEU needs a package for some languages, such as Japanese.
        return f"not known: {error}"


def _split_text(new_corpus: "NewCorpus", scratch: Path) -> "TextFolder":
    """Return the prepared training, validation and test text of a new corpus.

    Args:
        new_corpus: The new corpus.
        scratch: The folder below which the stages wrote their outputs; the stage `split` wrote
            this text.
    """
    from bleuprint.config import paths
    from bleuprint.text.parallel import TextFolder

    source, target = new_corpus.languages
    return TextFolder(paths.corpus_folder(new_corpus.name, "split", scratch), source, target)
