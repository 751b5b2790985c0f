"""The command inspect: show what the preparation stages do to a random sample of a corpus.

`inspect_corpus` runs the stages from download to split on the sample, and `inspection_lines` prints
the result. The command new-corpus runs `prepare_sample`, the part without checks and notes.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import Settings
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.dedup import Deduplication
from bleuprint.corpus.download.download import Sample, download_corpus
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.split import split_folder
from bleuprint.corpus.stage_text import text_of_stage
from bleuprint.corpus.steps.filter_stats import NothingLeft, SetCounts, read_filter_stats
from bleuprint.corpus.steps.shard import WholeText
from bleuprint.corpus.steps.sharded import Step, run_step
from bleuprint.corpus.text_notes import notes_on_corpus_texts
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import counted
from bleuprint.text.parallel import TextFolder

# The columns and lines of a terminal of unknown size.
_DEFAULT_TERMINAL_SIZE = (120, 24)


@dataclass(frozen=True)
class Inspection:
    """What the rules of a corpus do to a sample of its training text.

    Attributes:
        pairs: The number of pairs of the whole training text.
        sample: The largest number of pairs that were drawn from it, and the sampling seed.
        stages: The counts of the training text by stage. If a stage drops all pairs, it is the
            last one.
        sets: The number of pairs of train, valid and each test.NAME after the stage split. The
            numbers are estimates for the whole text. Empty if a stage drops all pairs, or if the
            sample is too small to be split.
        failure: Why the whole text leaves no sets; empty otherwise.
        notes: Notes on texts that do not look like sentences.
    """

    pairs: int
    sample: Sample
    stages: dict[str, SetCounts]
    sets: dict[str, int]
    failure: str = ""
    notes: tuple[str, ...] = ()

    @property
    def sampled_pairs(self) -> int:
        """The number of pairs that were drawn."""
        return self.stages["clean"].pairs_in

    @property
    def has_all_pairs(self) -> bool:
        """Return whether all pairs of the training text were drawn."""
        return self.sampled_pairs == self.pairs


def inspect_corpus(
    name: str, settings: Settings, sample: Sample, downloads: Downloads, scratch: Path, workers: int
) -> Inspection:
    """Show what cleaning and filtering would do to a corpus, by doing it to a random sample.

    The sample is drawn from the whole text, because many corpora are sorted, so that their first
    pairs say little about the rest. The stages write to a temporary folder, not to the folders of
    the experiment. Texts that a system still has to translate are skipped.

    Args:
        name: The name of a corpus, of one of its language pairs (CORPUS/DIRECTION), or of one of
            its training texts (CORPUS/TEXT).
        settings: The settings of the experiment.
        sample: How many pairs to draw, and the sampling seed.
        downloads: Where the files of the corpus are downloaded from.
        scratch: A folder for temporary files.
        workers: The number of processes.

    Raises:
        UserError: The corpus has several language pairs, or no training text of its own.
    """
    corpus_name, _, text_name = name.partition("/")
    if corpus_name in settings.corpora and text_name in settings.corpora[corpus_name].files.train:
        whole_corpus = settings.corpora[corpus_name]
        name, _ = whole_corpus.origin_of_test(corpus_name, text_name)
        corpus = whole_corpus.only_text(text_name)
    else:
        corpus = _with_parallel_texts(name, settings.corpus(name))
    scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=scratch) as folder:
        root = Path(folder)
        _download_other_held_out(name, settings, downloads, root)
        inspection = prepare_sample(name, corpus, sample, downloads, root, workers)
        notes = notes_on_corpus_texts(name, corpus, downloads)
        return replace(inspection, notes=tuple(notes))


def _with_parallel_texts(name: str, corpus: Corpus) -> Corpus:
    """Remove from the settings of a corpus the training texts in only one language.

    A system of the experiment will translate them, but only after the corpus is inspected.

    Args:
        name: The name of the corpus, for messages.
        corpus: The settings of the corpus.

    Returns:
        The settings without these texts.

    Raises:
        UserError: The corpus has several language pairs, and the user must name one; or no
            training text is left.
    """
    pair_names = list(corpus.language_pairs(name))
    if name not in pair_names:
        raise UserError(
            f"corpora.{name} has {len(pair_names)} directions: {', '.join(pair_names)}. "
            f"Name one: bleuprint inspect {pair_names[0]}"
        )
    files_together = corpus.files.prepared_together()
    if corpus.files.train and not files_together.train:
        texts = list(corpus.files.train)
        raise UserError(
            f"corpora.{name}: each training text is prepared by itself: {', '.join(texts)}. Name "
            f"one: bleuprint inspect {name}/{texts[0]}"
        )
    if not corpus.files.train:
        raise UserError(f"corpora.{name} is zero-shot, so there is no training text to inspect")
    parallel_texts = files_together.parallel_sets()["train"]
    if not parallel_texts:
        raise UserError(
            f"corpora.{name}: systems translate one side of all its training texts, so there is "
            "no text to inspect"
        )
    return replace(corpus, files=replace(corpus.files, train=parallel_texts))


def _download_other_held_out(
    name: str, settings: Settings, downloads: Downloads, root: Path
) -> None:
    """Download the validation and test sets of the other language pairs of a corpus.

    Deduplication compares the training text of one language pair with the test sets of all pairs.
    It reads these from the folder of cleaned text, so they are downloaded to this folder. Cleaning
    can be skipped, since it does not change validation and test sets.

    Args:
        name: The name of the language pair whose training text is inspected.
        settings: The settings of the experiment.
        downloads: Where the files are downloaded from.
        root: The temporary project folder to write to.
    """
    for other_name, other_pair in settings.other_language_pairs(name).items():
        cleaned = text_of_stage("clean", other_name, other_pair, root)
        held_out_files = replace(other_pair.files, train={})
        filter_stats = paths.filter_stats_file(other_name, "download", root)
        download_corpus(other_name, held_out_files, cleaned, filter_stats, downloads)


def prepare_sample(
    name: str, corpus: Corpus, sample: Sample, downloads: Downloads, root: Path, workers: int
) -> Inspection:
    """Run the stages download, clean, dedup, filter and split on a sample of a training text.

    The stages write to the folders that they have in an experiment, below `root`.

    Args:
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        sample: How many pairs to draw, and the sampling seed.
        downloads: Where the files of the corpus are downloaded from.
        root: The temporary project folder to write to.
        workers: The number of processes.

    Returns:
        What each stage did. If a stage dropped all pairs, the later stages are missing.
    """
    raw = TextFolder(paths.download_folder(name, root), corpus.source, corpus.target)
    filter_stats = paths.filter_stats_file(name, "download", root)
    download_corpus(name, corpus.files, raw, filter_stats, downloads, sample)
    download_counts = read_filter_stats(filter_stats)["train"]
    sampled_pairs = download_counts.pairs_out
    # The statistics count the pairs that were not drawn as dropped by a rule named `sample`.
    all_pairs = sampled_pairs + download_counts.dropped.get("sample", 0)

    stages: dict[str, SetCounts] = {}
    for step_class in (Cleaning, Deduplication, Filtering):
        step: Step = step_class.for_corpus(name, corpus, root)
        shards = paths.shards_folder(name, step.stage, root)
        try:
            run_step(step, shards, WholeText(), workers)
        except NothingLeft as error:
            stages[step.stage] = error.counts
            return Inspection(all_pairs, sample, stages, sets={}, failure=str(error))
        stages[step.stage] = read_filter_stats(step.filter_stats_path)["train"]

    try:
        split = _split_sample(name, corpus, root, workers)
    except UserError as error:
        # The text is too small to be split. If it is a sample, the whole text may be large enough:
        # this is not a failure.
        has_all_pairs = sampled_pairs == all_pairs
        failure = str(error) if has_all_pairs else ""
        return Inspection(all_pairs, sample, stages, sets={}, failure=failure)
    split_stats = read_filter_stats(paths.filter_stats_file(name, "split", root))
    stages["split"] = split_stats["train"]
    sets = _estimate_sets(corpus, split, all_pairs, sampled_pairs)
    return Inspection(all_pairs, sample, stages, sets)


def _split_sample(name: str, corpus: Corpus, root: Path, workers: int) -> TextFolder:
    """Draw validation and test sets from the filtered sample, if the corpus has none.

    Args:
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        root: The temporary project folder.
        workers: The number of processes.

    Returns:
        The folder with the training, validation and test sets.

    Raises:
        UserError: The sample has too few pairs.
    """
    filtered = text_of_stage("filter", name, corpus, root)
    split = filtered.with_path(paths.corpus_folder(name, "split", root))
    split_folder(
        corpus=name,
        settings=corpus.split,
        decontaminate=corpus.dedup.decontaminate,
        filtered_text=filtered,
        split=split.path,
        filter_stats_path=paths.filter_stats_file(name, "split", root),
        workers=workers,
    )
    return split


def _estimate_sets(
    corpus: Corpus, split: TextFolder, pairs: int, sampled_pairs: int
) -> dict[str, int]:
    """Estimate from a prepared sample how many pairs each set of the whole corpus would have.

    Args:
        corpus: The settings of the corpus.
        split: The folder with the sets into which the sample was split.
        pairs: The number of pairs of the whole training text.
        sampled_pairs: The number of pairs that were drawn from it.

    Returns:
        The number of pairs by set, such as `train`.
    """
    sets = {}
    for set_name in split.set_names():
        pair_count = split.count(set_name)
        # A published validation or test set is complete. The training text is a sample, and so are
        # the sets that are drawn from it: scale their numbers up.
        is_published = set_name != "train" and set_name in corpus.files.set_names()
        if not is_published:
            pair_count = round(pair_count * pairs / sampled_pairs)
        sets[set_name] = pair_count
    return sets


def inspection_lines(inspection: Inspection, samples: int) -> Iterator[str]:
    """Yield the lines that `bleuprint inspect` prints about a prepared sample of a corpus.

    Args:
        inspection: What each stage did to the sample.
        samples: How many examples to show for each rule.

    Yields:
        For each stage how many pairs each rule changed or dropped, with examples; then the sizes of
        the training, validation and test sets.
    """
    if not inspection.has_all_pairs:
        yield (
            f"{inspection.sampled_pairs:,} of {inspection.pairs:,} pairs, sampled with seed "
            f"{inspection.sample.seed}. Brackets contain 95% intervals of shares in all pairs. "
            "Repeated pairs are found only within the sample"
        )
    for stage, counts in inspection.stages.items():
        yield f"{stage}: {counted(counts.pairs_in, 'pair')} in, {counts.pairs_out:,} out"
        for rule, count in counts.changed.items():
            examples = counts.samples.get(rule, [])
            yield _rule_line(rule, f"{count:,} changed", count, counts.pairs_in, inspection)
            yield from _side_by_side(examples[:samples])
        for rule, count in counts.dropped.items():
            examples = counts.samples.get(rule, [])
            yield _rule_line(rule, f"{count:,} dropped", count, counts.pairs_in, inspection)
            yield from _side_by_side(examples[:samples])
    if inspection.sets:
        sizes = ", ".join(f"{set_name} {pairs:,}" for set_name, pairs in inspection.sets.items())
        about = "" if inspection.has_all_pairs else "about "
        yield f"pairs that remain: {about}{sizes}"


def _rule_line(rule: str, effect: str, count: int, pairs_in: int, inspection: Inspection) -> str:
    """Return the line about one rule: `  length: 12 dropped, 1.20% [0.69%, 2.09%]`.

    The interval is omitted if the whole text was prepared, not a sample.

    Args:
        rule: The name of the rule, such as `length`.
        effect: How many pairs the rule changed or dropped, such as "12 dropped".
        count: The number of these pairs.
        pairs_in: The number of pairs that the stage read.
        inspection: The prepared sample.
    """
    # If the stage has read no pairs, the share is 0 / 1.
    share = count / max(pairs_in, 1)
    line = f"  {rule}: {effect}, {share:.2%}"
    if inspection.has_all_pairs:
        return line
    return f"{line} {_interval(count, pairs_in)}"


def _interval(count: int, pairs: int) -> str:
    """Return the 95% interval of a share that was measured in a sample: `[4.56%, 69.94%]`.

    Args:
        count: The number of sampled pairs that a rule changed or dropped.
        pairs: The number of sampled pairs.
    """
    from scipy.stats import binomtest

    # If the stage has read no pairs, the share is 0 of 1.
    interval = binomtest(count, max(pairs, 1)).proportion_ci(method="wilson")
    return f"[{interval.low:.2%}, {interval.high:.2%}]"


def _side_by_side(samples: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """Lay out sentence pairs in two columns for a terminal, the source on the left.

    A dash marks a pair; `>` marks its form after an edit, if the edit changed it visibly.

    Args:
        samples: The pairs, as dictionaries with `source` and `target`. Pairs that were edited also
            have `new_source` and `new_target`.
    """
    width = shutil.get_terminal_size(_DEFAULT_TERMINAL_SIZE).columns
    console = Console(width=width, no_color=True, highlight=False)
    mark_column = ""
    source_column = Column(overflow="fold", ratio=1)
    target_column = Column(overflow="fold", ratio=1)
    table = Table.grid(
        mark_column,
        source_column,
        target_column,
        padding=(0, 2),
        pad_edge=True,
        expand=True,
    )
    for sample in samples:
        source = visible(str(sample["source"]))
        target = visible(str(sample["target"]))
        table.add_row("   -", Text(source), Text(target))
        # A pair that was not edited has no new form.
        new_source = visible(str(sample.get("new_source", sample["source"])))
        new_target = visible(str(sample.get("new_target", sample["target"])))
        if (new_source, new_target) != (source, target):
            table.add_row("   >", Text(new_source), Text(new_target))
    if table.row_count == 0:
        return
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        yield line.rstrip()


def visible(text: str) -> str:
    r"""Return a text with escapes in place of unprintable characters, such as `\x00`."""
    characters = []
    for character in text:
        if not character.isprintable():
            character = character.encode("unicode_escape").decode()
        characters.append(character)
    return "".join(characters)
