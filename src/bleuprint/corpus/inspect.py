"""The command inspect: what clean, dedup and filter do to a random sample of a corpus."""

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
from bleuprint.corpus.steps.filter_stats import NothingLeft, SetCounts, read_filter_stats
from bleuprint.corpus.steps.shard import WholeText
from bleuprint.corpus.steps.sharded import Step, run_step
from bleuprint.corpus.text_notes import notes_on_corpus_texts
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import counted
from bleuprint.text.parallel import TextFolder


@dataclass(frozen=True)
class Inspection:
    """What the rules of a corpus do to its training text, or to a sample of it.

    `pairs`: the pairs of the training text, of which at most `sample` were drawn. `stages`: the
    counts of train by stage; a stage that drops all pairs is the last one. `sets`: the pairs of
    train, valid and each test.NAME after split, estimates if not all pairs were drawn, and empty if
    these are too few to be split. `failure`: why no sets could be made of all pairs. `notes`: on
    texts that do not look like sentences.
    """

    pairs: int
    sample: Sample
    stages: dict[str, SetCounts]
    sets: dict[str, int]
    failure: str = ""
    notes: tuple[str, ...] = ()

    @property
    def sampled_pairs(self) -> int:
        """The pairs of the training text that were drawn."""
        return self.stages["clean"].pairs_in

    @property
    def has_all_pairs(self) -> bool:
        """Whether all pairs were drawn."""
        return self.sampled_pairs == self.pairs


def inspect_corpus(
    name: str, settings: Settings, sample: Sample, source: Downloads, scratch: Path, workers: int
) -> Inspection:
    """Run clean, dedup, filter and split on a sample of the training texts of a corpus.

    Corpora are sorted, so that their first pairs say little of the rest: texts are read whole.
    Outputs go to a temporary folder below `scratch`; those of the stages are not changed. Texts of
    which a system translates one side are left out.

    Args:
        name: a corpus, or one of its language pairs, as `Corpus.pairs` names it.
        settings: the experiment.
        sample: how many pairs to draw, and the seed.
        source: where files are fetched from.
        scratch: a folder for temporary files.
        workers: the number of processes.

    Raises:
        UserError: the corpus has several language pairs, or no training text of its own.
    """
    corpus = settings.corpus(name)
    pair_names = list(corpus.language_pairs(name))
    if name not in pair_names:
        raise UserError(
            f"corpora.{name} has {len(pair_names)} directions: {', '.join(pair_names)}; "
            f"name one: bleuprint inspect {pair_names[0]}"
        )
    parts = corpus.files.parallel_sets()["train"]
    if not corpus.files.train:
        raise UserError(f"corpora.{name}: zero_shot: it has no training text")
    if not parts:
        raise UserError(f"corpora.{name}: systems translate one side of all its training texts")
    corpus = replace(corpus, files=replace(corpus.files, train=parts))
    scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=scratch) as folder:
        root = Path(folder)
        for other, pair in settings.other_language_pairs(name).items():
            # dedup compares with their held-out sets, too
            clean = TextFolder(paths.corpus_folder(other, "clean", root), *pair.languages)
            files = replace(pair.files, train={})
            counts = paths.filter_stats_file(other, "download", root)
            download_corpus(other, files, clean, counts, source)
        inspection = prepare_sample(name, corpus, sample, source, root, workers)
        return replace(inspection, notes=tuple(notes_on_corpus_texts(name, corpus, source)))


def prepare_sample(
    name: str, corpus: Corpus, sample: Sample, source: Downloads, root: Path, workers: int
) -> Inspection:
    """Run the stages from download to split on a sample of the training texts.

    Their outputs stay below `root`, at the places that the pipeline gives them in a project.

    Args:
        name: the name of the corpus.
        corpus: its settings.
        sample: how many pairs to draw, and the seed.
        source: where files are fetched from.
        root: the folder for the outputs.
        workers: the number of processes.
    """
    raw = TextFolder(paths.download_folder(name, root), corpus.source, corpus.target)
    filter_stats = paths.filter_stats_file(name, "download", root)
    download_corpus(name, corpus.files, raw, filter_stats, source, sample)
    read = read_filter_stats(filter_stats)["train"]
    pairs = read.pairs_out + read.dropped.get("sample", 0)
    stages: dict[str, SetCounts] = {}
    for kind in (Cleaning, Deduplication, Filtering):
        step: Step = kind.for_corpus(name, corpus, root)
        try:
            run_step(step, paths.shards_folder(name, step.stage, root), WholeText(), workers)
        except NothingLeft as error:
            stages[step.stage] = error.counts
            return Inspection(pairs, sample, stages, {}, str(error))
        stages[step.stage] = read_filter_stats(step.filter_stats_path)["train"]
    filtered = TextFolder(paths.corpus_folder(name, "filter", root), corpus.source, corpus.target)
    split = filtered.with_path(paths.corpus_folder(name, "split", root))
    filter_stats = paths.filter_stats_file(name, "split", root)
    try:
        split_folder(
            name,
            corpus.split,
            corpus.dedup.decontaminate,
            filtered,
            split.path,
            filter_stats,
            workers,
        )
    except UserError as error:
        is_whole = pairs == read.pairs_out
        # A sample may be too small to be split where the whole text is not.
        return Inspection(pairs, sample, stages, {}, str(error) if is_whole else "")
    stages["split"] = read_filter_stats(filter_stats)["train"]
    sets = {}
    for each in split.names():
        sets[each] = split.count(each)
        if each not in corpus.files.set_names() or each == "train":
            sets[each] = round(sets[each] * pairs / read.pairs_out)
    return Inspection(pairs, sample, stages, sets)


def inspection_lines(inspection: Inspection, samples: int) -> Iterator[str]:
    """Yield the lines that `bleuprint inspect` prints, rule by rule, then the sizes of the sets."""
    if not inspection.has_all_pairs:
        yield (
            f"{inspection.sampled_pairs:,} of {inspection.pairs:,} pairs, drawn by seed "
            f"{inspection.sample.seed}; in brackets 95% intervals of shares in all pairs. "
            "Repeated pairs are found only if drawn"
        )
    for stage, counts in inspection.stages.items():
        yield f"{stage}: {counted(counts.pairs_in, 'pair')} in, {counts.pairs_out:,} out"
        for action, rules in ("changed", counts.changed), ("dropped", counts.dropped):
            for rule, count in rules.items():
                share = f"{count / max(counts.pairs_in, 1):.2%}"
                interval = (
                    "" if inspection.has_all_pairs else f" {_interval(count, counts.pairs_in)}"
                )
                yield f"  {rule}: {count:,} {action}, {share}{interval}"
                yield from _side_by_side(counts.samples.get(rule, [])[:samples])
    if inspection.sets:
        sizes = ", ".join(f"{name} {pairs:,}" for name, pairs in inspection.sets.items())
        about = "" if inspection.has_all_pairs else "about "
        yield f"pairs that remain: {about}{sizes}"


def _interval(count: int, pairs: int) -> str:
    """The 95 % interval of a share (Wilson 1927)."""
    from scipy.stats import binomtest

    interval = binomtest(count, max(pairs, 1)).proportion_ci(method="wilson")
    return f"[{interval.low:.2%}, {interval.high:.2%}]"


def _side_by_side(samples: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """Pairs, source on the left and target on the right; the form after an edit follows `>`."""
    width = shutil.get_terminal_size((120, 24)).columns
    console = Console(width=width, no_color=True, highlight=False)
    columns = [Column(overflow="fold", ratio=1) for _ in range(2)]
    table = Table.grid("", *columns, padding=(0, 2), pad_edge=True, expand=True)
    for sample in samples:
        sides = [visible(str(sample[side])) for side in ("source", "target")]
        table.add_row("   -", *map(Text, sides))
        new = []
        for side in ("source", "target"):
            new.append(visible(str(sample.get(f"new_{side}", sample[side]))))
        if new != sides:
            table.add_row("   >", *map(Text, new))
    if table.row_count:
        with console.capture() as capture:
            console.print(table)
        yield from (line.rstrip() for line in capture.get().splitlines())


def visible(text: str) -> str:
    """`text` with characters that are not printable as Python's escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
