"""The command new-corpus: it adds a user's text to params.yaml and prints what to expect of it."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.cli.measured_corpus import MeasuredCorpus, RemainingPairs, measure_corpus
from bleuprint.config.experiment import load_settings
from bleuprint.runtime import environment
from bleuprint.runtime.errors import print_message
from bleuprint.runtime.foreign_text import print_escaped
from bleuprint.runtime.wording import counted

if TYPE_CHECKING:
    from bleuprint.config.system import System
    from bleuprint.corpus.insert_corpus import Insertion
    from bleuprint.corpus.inspect import Inspection
    from bleuprint.corpus.new_corpus import NewCorpus
    from bleuprint.training.fitted_systems import TextSize

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


def new_corpus(arguments: argparse.Namespace) -> None:
    """Add parallel text to params.yaml: files in inputs/, or a text of OPUS or Hugging Face.

    If params.yaml still has the example's systems, systems whose sizes fit the text replace them.
    Then print what the user can expect: how many pairs remain after cleaning and filtering, what
    looks unusual, how long training takes, and how exact the scores will be.
    """
    from bleuprint.corpus.insert_corpus import Example, insert_corpus
    from bleuprint.corpus.new_corpus import NewCorpus
    from bleuprint.training.fitted_systems import fitted_systems_yaml

    # Report errors in params.yaml now: reading the text below may take minutes.
    load_settings()
    params = Path("params.yaml")
    recipe = Path("recipes", "own.yaml")
    measured = measure_corpus(
        NewCorpus.from_files(arguments.files, arguments.languages, arguments.columns)
    )
    fitted_systems = fitted_systems_yaml(measured.text, is_portable=not environment.has_gpu())
    # params.yaml may be a copy of this recipe. Then the new corpus replaces the example in it,
    # unless the user has changed the example.
    example = Example.from_recipe(recipe) if recipe.exists() else None
    insertion = insert_corpus(params, measured.new_corpus, example, fitted_systems)
    _print_what_was_added(measured, params, insertion)
    _print_expectations(measured)
    for line in _next_steps(measured.new_corpus):
        print(line)


def _print_what_was_added(measured: MeasuredCorpus, params: Path, insertion: "Insertion") -> None:
    """Print how the files were read, the new entry, and how many pairs remain after its rules.

    Args:
        measured: The new corpus.
        params: The file to which it was added, params.yaml.
        insertion: Whether the corpus and systems of the example were replaced.
    """
    for line in measured.new_corpus.about:
        print_escaped(line)
    _print_entry(measured.new_corpus, params, insertion.has_replaced_example)
    _print_remaining_pairs(measured.new_corpus, measured.inspection, measured.remaining)
    if not insertion.has_replaced_systems:
        print_message(
            f"{params} keeps its systems. Their sizes do not fit this text. To get systems sized "
            "for your text: make recipe NAME=own, then new-corpus",
            "note",
        )


def _print_expectations(measured: MeasuredCorpus) -> None:
    """Print what the user can expect of a new corpus.

    These are notes on what is unusual in the text, how long the trainings will take, and how exact
    the scores will be.
    """
    for note in _notes_on_text(measured):
        print_message(note, "note")
    for line in _training_forecast(
        measured.new_corpus.name, measured.text, measured.remaining.valid
    ):
        print(line)
    for line in _quality_forecast(measured.remaining):
        print(line)


def _notes_on_text(measured: MeasuredCorpus) -> Iterator[str]:
    """Yield notes on problems with the text that the user may want to solve.

    Problems are a rule that drops many pairs, a small test set, and a BLEU ceiling: if preparing
    the text changes the references, not even a perfect translation reaches 100 BLEU.
    """
    yield from _rule_warnings(measured.new_corpus, measured.inspection)
    test_pairs = measured.remaining.test
    if test_pairs < _MIN_TEST_PAIRS:
        yield (
            f"the test set has only {test_pairs} pairs. Comparing systems needs at least "
            f"{_MIN_TEST_PAIRS}. Add text, or name a test set of your own in files.tests"
        )
    if measured.bleu_ceiling:
        yield f"BLEU ceiling of the test set is {measured.bleu_ceiling}"


def _print_entry(new_corpus: "NewCorpus", params: Path, replaces_example: bool) -> None:
    """Print the entry that was added to params.yaml, below the number of its sentence pairs.

    Args:
        new_corpus: The new corpus.
        params: The path of params.yaml.
        replaces_example: Whether the entry took the place of the example's entry.
    """
    replacement = " in place of the example" if replaces_example else ""
    print_escaped(
        f"{new_corpus.pairs:,} pairs; {params} has a new entry{replacement}:\n\n{new_corpus.entry}"
    )


def _print_remaining_pairs(
    new_corpus: "NewCorpus", inspection: "Inspection", remaining: RemainingPairs
) -> None:
    """Print how many sentence pairs remain after the cleaning and filtering rules, in each set.

    If the rules were tried only on a sample of the text, the numbers are estimates.
    """
    about = "" if inspection.has_all_pairs else "about "
    print(
        f"{about}{remaining.total:,} of {new_corpus.pairs:,} pairs remain after the rules: "
        f"train {remaining.train:,}, valid {remaining.valid:,}, test {remaining.test:,}"
    )


def _rule_warnings(new_corpus: "NewCorpus", inspection: "Inspection") -> Iterator[str]:
    """Yield a warning for each cleaning or filtering rule that drops a large share of the pairs.

    Args:
        new_corpus: The new corpus.
        inspection: How many pairs each stage read, and how many each of its rules dropped.
    """
    for stage, counts in inspection.stages.items():
        for rule, dropped_pairs in counts.dropped.items():
            # The counts also list the pairs that are moved from the training text to the validation
            # and test sets, as drawn_for_valid and drawn_for_test. They are not lost.
            is_sampling = rule.startswith("drawn_for_")
            dropped_share = dropped_pairs / max(counts.pairs_in, 1)
            if is_sampling or dropped_share <= _REPORTED_DROP_SHARE:
                continue
            yield (
                f"rule {rule} of {stage} drops {dropped_pairs:,} of {counts.pairs_in:,} pairs "
                f"({dropped_share:.0%}). {_ADVICE_ON_RULES.get(stage, '')}"
                f"To see some: bleuprint inspect {new_corpus.name}"
            )


def _training_forecast(corpus_name: str, text: "TextSize", valid_pairs: int) -> Iterator[str]:
    """Yield a line for each system on how long it trains, and a line on the time of all stages.

    Times can be forecast only without a GPU. With a GPU, the lines give only numbers of updates.

    Args:
        corpus_name: The name of the corpus in params.yaml.
        text: The size of the training text.
        valid_pairs: The number of validation pairs.
    """
    # The seconds of each training, separately for the two kinds of arithmetic: trainings with
    # portable arithmetic use one core each, those with native arithmetic all cores.
    portable_seconds: list[float] = []
    native_seconds: list[float] = []
    for name, system in load_settings().trained_systems_on(corpus_name).items():
        max_updates = system.train.update_limit(round(text.tokens), text.pairs)
        if max_updates is None:
            yield f"{name} trains until train.patience stops it"
            continue
        line = _line_on_updates(name, system, text, max_updates)
        if environment.has_gpu():
            yield line
            continue
        seconds = _seconds_of_training(system, text, valid_pairs, max_updates)
        yield f"{line}: {_minutes(seconds / 60)}"
        if system.arithmetic == "portable":
            portable_seconds.append(seconds)
        else:
            native_seconds.append(seconds)
    if portable_seconds or native_seconds:
        training_seconds = _seconds_of_all_trainings(portable_seconds, native_seconds)
        yield _line_on_all_stages(corpus_name, text, training_seconds)
    yield "For a better system, raise its train.max_updates in params.yaml: it trains longer"


def _line_on_updates(name: str, system: "System", text: "TextSize", max_updates: int) -> str:
    """Return how many updates and epochs a system trains, as a line without its time.

    Args:
        name: The name of the system in params.yaml.
        system: The settings of the system.
        text: The size of the training text.
        max_updates: The number of updates after which the training ends.
    """
    from bleuprint.training.fitted_systems import epochs_in_updates

    epochs = epochs_in_updates(system.train, text, max_updates)
    updates = counted(max_updates, "update")
    return f"{name} trains for at most {updates}, {epochs:,.1f} epochs"


def _line_on_all_stages(corpus_name: str, text: "TextSize", training_seconds: float) -> str:
    """Return how long all stages of a corpus may take on this machine.

    Args:
        corpus_name: The name of the corpus in params.yaml.
        text: The size of the training text, which takes time to prepare.
        training_seconds: How long all trainings on the corpus take together.
    """
    preparation_minutes = _FIXED_MINUTES + text.pairs / _PAIRS_PREPARED_PER_MINUTE
    total = _minutes(training_seconds / 60 + preparation_minutes)
    idle_cores = counted(environment.worker_count(), "idle core")
    return (
        f"forecast for {corpus_name}, without other corpora: {total}, "
        f"on {idle_cores} of this machine"
    )


def _seconds_of_training(
    system: "System", text: "TextSize", valid_pairs: int, max_updates: int
) -> float:
    """Forecast how many seconds a training takes on the processor of this machine.

    Args:
        system: The settings of the system.
        text: The size of the training text.
        valid_pairs: The number of validation pairs.
        max_updates: The number of updates after which the training ends.
    """
    from bleuprint.training.fitted_systems import training_seconds

    threads = environment.worker_count()
    if system.arithmetic == "portable":
        threads = 1  # Portable arithmetic trains with a single thread.
    return training_seconds(system, text, valid_pairs, max_updates, threads)


def _seconds_of_all_trainings(
    portable_seconds: Sequence[float], native_seconds: Sequence[float]
) -> float:
    """Forecast how many seconds all trainings take together on this machine.

    Trainings with portable arithmetic use one core each and run at the same time. Trainings with
    native arithmetic use all cores and run one after another.

    Args:
        portable_seconds: The seconds of each training with portable arithmetic.
        native_seconds: The seconds of each training with native arithmetic.
    """
    seconds_if_cores_are_shared = sum(portable_seconds) / environment.worker_count()
    # However many cores there are, the longest training uses only one, and sets a lower limit.
    longest_portable_seconds = max(portable_seconds, default=0.0)
    seconds_of_portable = max(longest_portable_seconds, seconds_if_cores_are_shared)
    return seconds_of_portable + sum(native_seconds)


def _minutes(minutes: float) -> str:
    """Return a duration in whole minutes, with its unit; at least `1 minute`."""
    return counted(max(1, round(minutes)), "minute")


def _quality_forecast(remaining: RemainingPairs) -> Iterator[str]:
    """Yield how good the systems and how exact the scores will be, given the sizes of the sets.

    A system that is trained on few pairs translates only similar text. The scores of a small test
    set are uncertain.
    """
    from bleuprint.report.page.cautions import FEW_TRAINING_PAIRS

    if remaining.train < FEW_TRAINING_PAIRS:
        yield (
            f"{remaining.train:,} training pairs are few. A system trained only on them "
            "translates only similar text. Add text, or start from a trained model "
            "(docs/training.md, Fine-tuning)"
        )
    if remaining.test < _MIN_TEST_PAIRS:
        return  # `_notes_on_text` already tells that the test set is too small.
    # The confidence interval was measured on a test set of another size. Its width is proportional
    # to 1 / sqrt(number of test pairs).
    scale = (_MEASURED_TEST_PAIRS / remaining.test) ** 0.5
    bleu_margin = _MEASURED_BLEU_MARGIN * scale
    yield f"a test set of {remaining.test:,} pairs measures BLEU to about ±{bleu_margin:.1f}"


def _next_steps(new_corpus: "NewCorpus") -> Iterator[str]:
    """Yield what the user does next, one step per line."""
    if new_corpus.text_by_name is None:
        yield "Next: state the license of the text in params.yaml"
    else:
        for terms in new_corpus.corpus.license_and_citation.values():
            yield f"Next: read the license of the text, {terms.license}"
    yield f"Next: bleuprint inspect {new_corpus.name} (what each rule drops, with samples)"
    yield "Next: make reproduce (prepare, train, translate, print the table)"
