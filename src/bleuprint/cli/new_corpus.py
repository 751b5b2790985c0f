"""The command new-corpus: it adds a user's text to params.yaml and prints what to expect of it."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bleuprint.config.experiment import load_settings
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.foreign_text import print_escaped
from bleuprint.runtime.wording import counted, join_with_and

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
# A rule is reported if it drops more than this share of the pairs that it reads: so strict a rule
# often does not fit the text.
_REPORTED_DROP_SHARE = 0.1
# The number of test pairs below which the report does not compare systems.
_MIN_TEST_PAIRS = 100
# The forecast for all stages except training: a fixed number of minutes, and the number of pairs
# that are prepared in one more minute.
_FIXED_MINUTES = 3
_PAIRS_PREPARED_PER_MINUTE = 50_000
# Half the width of the 95% confidence interval of BLEU, in BLEU points, as measured on a Multi30k
# test set with the number of sentences below.
_MEASURED_BLEU_MARGIN = 1.6
_MEASURED_TEST_PAIRS = 1000
# Advice on a rule that drops many pairs, by the stage of the rule.
_ADVICE_ON_RULES = {
    "filter": "If they are good pairs, remove the rule from filter in params.yaml. ",
    "dedup": "The setting dedup in params.yaml says which repeated pairs are dropped. ",
}


@dataclass(frozen=True)
class _RemainingPairs:
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
class _AppliedRules:
    """A new corpus after its rules were tried.

    Attributes:
        new: The corpus.
        inspection: What the rules drop.
        folder: The folder with the outputs of the stages.
    """

    new: "NewCorpus"
    inspection: "Inspection"
    folder: Path


@dataclass(frozen=True)
class _MeasuredCorpus:
    """A new corpus, and what was measured of its text.

    Attributes:
        new: The corpus, with the size of its vocabulary.
        inspection: What the rules drop.
        remaining: The pairs that remain.
        text: The size of the training text, by which systems are fitted.
        bleu_ceiling: The BLEU ceiling of the test set, as the end of a message; None if it is 100.
    """

    new: "NewCorpus"
    inspection: "Inspection"
    remaining: _RemainingPairs
    text: "TextSize"
    bleu_ceiling: str | None


def new_corpus(arguments: argparse.Namespace) -> None:
    """Add parallel text in inputs/ to params.yaml."""
    from bleuprint.corpus.insert_corpus import Example, insert_corpus
    from bleuprint.corpus.new_corpus import NewCorpus
    from bleuprint.training.fitted_systems import fitted_systems_yaml

    # Report errors in params.yaml before the files are read, which may take minutes.
    load_settings()
    params = Path("params.yaml")
    recipe = Path("recipes", "own.yaml")
    measured = _measure(
        NewCorpus.from_files(arguments.files, arguments.languages, arguments.columns)
    )
    example = Example.from_recipe(recipe) if recipe.exists() else None
    fitted_systems = fitted_systems_yaml(measured.text, is_portable=not environment.has_gpu())
    insertion = insert_corpus(params, measured.new, example, fitted_systems)

    for line in measured.new.about:
        print_escaped(line)
    _print_entry(measured.new, params, insertion.has_replaced_example)
    _print_remaining_pairs(measured.new, measured.inspection, measured.remaining)
    if not insertion.has_replaced_systems:
        print_message(
            f"{params} keeps its systems, whose sizes do not fit this text. To get systems sized "
            "for your text: make recipe NAME=own, then new-corpus",
            "note",
        )
    for note in _notes_on_text(measured):
        print_message(note, "note")
    for line in _training_forecast(measured.new.name, measured.text, measured.remaining.valid):
        print(line)
    for line in _expectations(measured.remaining):
        print(line)
    for line in _next_steps(measured.new):
        print(line)


def _measure(new: "NewCorpus") -> _MeasuredCorpus:
    """Prepare a sample of a new corpus in a temporary folder, and measure its text.

    Raises:
        UserError: The rules leave nothing to train or test on.
    """
    from bleuprint.training.fitted_systems import TextSize

    with _scratch_folder() as scratch:
        applied = _apply_fitting_rules(new, scratch)
        if applied.new.language_note:
            print_message(applied.new.language_note, "note")
        remaining = _remaining_pairs(applied.new, applied.inspection)
        pieces = _fit_pieces(applied.new, applied.folder)
        bleu_ceiling = _bleu_ceiling(applied.new, applied.folder)
    text = TextSize(
        pairs=remaining.train,
        source_length=pieces.source_length,
        target_length=pieces.target_length,
        vocabulary_size=pieces.size,
    )
    return _MeasuredCorpus(
        new=replace(applied.new, vocab_size=pieces.size),
        inspection=applied.inspection,
        remaining=remaining,
        text=text,
        bleu_ceiling=bleu_ceiling,
    )


def _notes_on_text(measured: _MeasuredCorpus) -> Iterator[str]:
    """Yield notes on rules that drop much, on a small test set, and on the BLEU ceiling."""
    yield from _rule_warnings(measured.new, measured.inspection)
    test_pairs = measured.remaining.test
    if test_pairs < _MIN_TEST_PAIRS:
        yield (
            f"the test set has only {test_pairs} pairs, and systems are compared from "
            f"{_MIN_TEST_PAIRS} on. Add text, or name a test set of your own in files.tests"
        )
    if measured.bleu_ceiling:
        yield f"BLEU ceiling of the test set is {measured.bleu_ceiling}"


def _print_entry(new: "NewCorpus", params: Path, replaces_example: bool) -> None:
    """Print the new entry of params.yaml."""
    replacement = " in place of the example" if replaces_example else ""
    print_escaped(f"{new.pairs:,} pairs; {params} has a new entry{replacement}:\n\n{new.entry}")


def _print_remaining_pairs(
    new: "NewCorpus", inspection: "Inspection", remaining: _RemainingPairs
) -> None:
    """Print how many pairs remain after the rules; the numbers of a sample are estimates."""
    about = "" if inspection.has_all_pairs else "about "
    print(
        f"{about}{remaining.total:,} of {new.pairs:,} pairs remain after the rules: "
        f"train {remaining.train:,}, valid {remaining.valid:,}, test {remaining.test:,}"
    )


@contextmanager
def _scratch_folder() -> Iterator[Path]:
    """Create a temporary folder on the disk of the project."""
    work = environment.work_folder()
    work.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=work, prefix="new-corpus-") as folder:
        yield Path(folder)


def _apply_rules(new: "NewCorpus", scratch: Path) -> "Inspection":
    """Run the stages that prepare the text, on a sample, and return what they drop.

    The stages write their outputs below `scratch`, where the functions below read them.
    """
    from bleuprint.corpus.download.download import Sample
    from bleuprint.corpus.download.fetch import downloads_of_environment
    from bleuprint.corpus.inspect import prepare_sample

    return prepare_sample(
        new.name,
        new.corpus,
        Sample(_SAMPLED_PAIRS, _SAMPLING_SEED),
        downloads_of_environment(),
        scratch,
        environment.worker_count(),
    )


def _apply_fitting_rules(new: "NewCorpus", scratch: Path) -> _AppliedRules:
    """Apply the rules, without language_id if only this rule leaves too few pairs.

    Names and numbers are in no language that the rule identifies.
    """
    inspection = _apply_rules(new, scratch)
    dropped_pairs = _language_id_drops(inspection)
    if not dropped_pairs or not _leaves_too_few(inspection):
        return _AppliedRules(new, inspection, scratch)
    read_pairs = inspection.stages["filter"].pairs_in
    names = join_with_and(new.files)
    note = (
        f"{names}: the filter language_id would drop {dropped_pairs:,} of {read_pairs:,} pairs, "
        f"so the entry omits it. Check that the text is in {join_with_and(new.languages)}"
    )
    if not new.has_given_languages:
        note += ". If it is not, remove the entry and add: --languages SOURCE TARGET"
    new_without = replace(new, has_language_id=False, language_note=note)
    folder = scratch / "without-language-id"
    inspection_without = _apply_rules(new_without, folder)
    if inspection_without.failure:
        return _AppliedRules(new, inspection, scratch)
    return _AppliedRules(new_without, inspection_without, folder)


def _language_id_drops(inspection: "Inspection") -> int:
    """Return the number of pairs that the rule language_id drops."""
    if "filter" not in inspection.stages:
        return 0
    return inspection.stages["filter"].dropped.get("language_id", 0)


def _leaves_too_few(inspection: "Inspection") -> bool:
    """Return whether the sets are too small, perhaps because of the filter language_id.

    They are if no sets could be made, or if the filter drops more than half of the text and few
    pairs remain.
    """
    from bleuprint.corpus.new_corpus import MIN_PAIRS

    if inspection.failure:
        return True
    drops_most = 2 * _language_id_drops(inspection) > inspection.stages["filter"].pairs_in
    return drops_most and sum(inspection.sets.values()) < MIN_PAIRS


def _remaining_pairs(new: "NewCorpus", inspection: "Inspection") -> _RemainingPairs:
    """Return how many pairs remain in each set.

    Raises:
        UserError: The rules leave nothing to train or test on.
    """
    if inspection.failure:
        names = join_with_and(new.files)
        raise UserError(
            f"{names}: the rules leave too few of the {new.pairs:,} pairs to train, validate and "
            f"test on: {inspection.failure}. Look at the languages, the columns and the text"
        )
    test_pairs = 0
    for set_name, pairs in inspection.sets.items():
        if set_name.startswith("test."):
            test_pairs += pairs
    return _RemainingPairs(
        train=inspection.sets["train"],
        valid=inspection.sets["valid"],
        test=test_pairs,
    )


def _fit_pieces(new: "NewCorpus", scratch: Path) -> "FittedPieces":
    """Return the vocabulary that fits the training text below `scratch`."""
    from bleuprint.dataset.fitted_pieces import fitted_pieces

    train = _split_text(new, scratch)
    return fitted_pieces(new.name, new.corpus, train, max_size=new.max_vocab_size)


def _bleu_ceiling(new: "NewCorpus", scratch: Path) -> str | None:
    """Return the BLEU that a perfect translation of the test set reaches, and how to raise it.

    A perfect translation scores below 100 if the preparation changes the text in a way that cannot
    be undone.

    Returns:
        The end of a message; None if the preparation keeps the text.
    """
    from bleuprint.corpus.split import DRAWN_TEST_SET
    from bleuprint.scoring.bleu_ceiling import describe_low_ceiling

    test_pairs = _split_text(new, scratch).pairs(DRAWN_TEST_SET)
    references = [pair.target for pair in test_pairs]
    try:
        return describe_low_ceiling(references, new.corpus, has_test_files=False)
    except UserError as error:  # BLEU needs a package for some languages, such as Japanese.
        return f"not known: {error}"


def _split_text(new: "NewCorpus", scratch: Path) -> "TextFolder":
    """Return the training, validation and test text that the stages wrote below `scratch`."""
    from bleuprint.config import paths
    from bleuprint.text.parallel import TextFolder

    source, target = new.languages
    return TextFolder(paths.corpus_folder(new.name, "split", scratch), source, target)


def _rule_warnings(new: "NewCorpus", inspection: "Inspection") -> Iterator[str]:
    """Yield a warning for each rule that drops a large share of the pairs."""
    for stage, counts in inspection.stages.items():
        for rule, dropped_pairs in counts.dropped.items():
            # Drawing the validation and test sets is recorded like a rule, but loses no pairs.
            is_sampling = rule.startswith("drawn_for_")
            if is_sampling or dropped_pairs <= _REPORTED_DROP_SHARE * counts.pairs_in:
                continue
            yield (
                f"rule {rule} of {stage} drops {dropped_pairs:,} of {counts.pairs_in:,} pairs "
                f"({dropped_pairs / counts.pairs_in:.0%}). {_ADVICE_ON_RULES.get(stage, '')}"
                f"To see some: bleuprint inspect {new.name}"
            )


def _training_forecast(corpus_name: str, text: "TextSize", valid_pairs: int) -> Iterator[str]:
    """Yield how long each system trains, and how long all stages may take on this machine.

    The times are forecast for processors only, not for GPUs.

    Args:
        corpus_name: The name of the corpus in params.yaml.
        text: The size of the training text.
        valid_pairs: The number of validation pairs.
    """
    from bleuprint.training import fitted_systems

    # The forecast seconds of each training, by whether its arithmetic is portable.
    portable_seconds: list[float] = []
    native_seconds: list[float] = []
    for name, system in load_settings().trained_systems_on(corpus_name).items():
        max_updates = system.train.update_limit(round(text.tokens), text.pairs)
        if max_updates is None:
            yield f"{name} trains until train.patience ends it"
            continue
        epochs = fitted_systems.epochs_in_updates(system.train, text, max_updates)
        updates = counted(max_updates, "update")
        line = f"{name} trains for at most {updates}, {epochs:,.1f} epochs"
        if not environment.has_gpu():
            is_portable = system.arithmetic == "portable"
            threads = 1 if is_portable else environment.worker_count()
            seconds = fitted_systems.training_seconds(
                system,
                text,
                valid_pairs,
                max_updates,
                threads,
            )
            seconds_of_kind = portable_seconds if is_portable else native_seconds
            seconds_of_kind.append(seconds)
            line += f": {_minutes(seconds / 60)}"
        yield line
    if portable_seconds or native_seconds:
        training_seconds = _seconds_of_all_trainings(portable_seconds, native_seconds)
        preparation_minutes = _FIXED_MINUTES + text.pairs / _PAIRS_PREPARED_PER_MINUTE
        total = _minutes(training_seconds / 60 + preparation_minutes)
        idle_cores = counted(environment.worker_count(), "idle core")
        yield (
            f"forecast for {corpus_name}, without other corpora: {total}, "
            f"on {idle_cores} of this machine"
        )
    yield "for a better system, in more hours: raise its train.max_updates in params.yaml"


def _seconds_of_all_trainings(
    portable_seconds: Sequence[float], native_seconds: Sequence[float]
) -> float:
    """Return how long several trainings take on this machine, in seconds.

    Portable trainings use one thread each and share the cores. Native trainings use all cores and
    run one after another.

    Args:
        portable_seconds: How long each training with portable arithmetic takes.
        native_seconds: How long each training with native arithmetic takes.
    """
    seconds_shared_by_cores = sum(portable_seconds) / environment.worker_count()
    # However many cores there are, one training is not divided among them.
    longest_portable_seconds = max(portable_seconds, default=0.0)
    parallel_seconds = max(longest_portable_seconds, seconds_shared_by_cores)
    return parallel_seconds + sum(native_seconds)


def _minutes(minutes: float) -> str:
    """Return a duration in whole minutes, with its unit; at least `1 minute`."""
    return counted(max(1, round(minutes)), "minute")


def _expectations(remaining: _RemainingPairs) -> Iterator[str]:
    """Yield what to expect of the size of the training text and of the test set."""
    from bleuprint.report.page.cautions import FEW_TRAINING_PAIRS as FEW_TRAINING_PAIRS

    if remaining.train < FEW_TRAINING_PAIRS:
        yield (
            f"{remaining.train:,} training pairs are few: a system trained on them alone "
            "translates what is like them; add text, or start from a trained model "
            "(docs/training.md, Fine-tuning)"
        )
    if remaining.test < _MIN_TEST_PAIRS:  # A note on standard error says so already.
        return
    # The width of a confidence interval is proportional to 1 / sqrt(number of test pairs).
    scale = (_MEASURED_TEST_PAIRS / remaining.test) ** 0.5
    bleu_margin = _MEASURED_BLEU_MARGIN * scale
    yield (
        f"BLEU will be known to about ±{bleu_margin:.1f}, by a test set of {remaining.test:,} pairs"
    )


def _next_steps(new: "NewCorpus") -> Iterator[str]:
    """Yield what the user does next, one step per line."""
    yield "next: state the license of the text in params.yaml"
    yield f"next: bleuprint inspect {new.name} (what each rule drops, with samples)"
    yield "next: make reproduce (prepare, train, translate, print the table)"
