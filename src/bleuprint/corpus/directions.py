"""The text of a corpus of several directions: sampled by split, tagged and joined by tokenize.

Directions are prepared one by one, in folders CORPUS/DIRECTION. Then their sets are joined in the
folder of the corpus: train, valid, and test.DIRECTION-NAME, in files of the languages src and tgt.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from io import BytesIO
from pathlib import Path

import numpy as np

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.directions import SOURCE, TARGET, tag
from bleuprint.corpus.steps.filter_stats import COPIES, FilterStats, FilterStatsRecord, SetCounts
from bleuprint.corpus.steps.filtering import join_files
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import Step, run_and_print
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_folder
from bleuprint.runtime.schema import read_record
from bleuprint.text.parallel import Block, PairWriter, TextFolder


def run_directions(
    kind: type[Step],
    name: str,
    corpus: Corpus,
    work: Shard | int | None,
    workers: int,
    run: Callable[[Step, Path, Shard | int | None, int], None] = run_and_print,
) -> None:
    """Run a stage on a corpus; on one of several directions on each, and join the statistics."""
    for part, pair in corpus.pairs(name).items():
        run(kind.of(part, pair), paths.shards(name, kind.stage), work, workers)
    if corpus.directions and not isinstance(work, Shard):
        join_filter_stats(name, corpus, kind.stage)


def sampled_pairs(pairs: Mapping[str, int], temperature: float) -> dict[str, int]:
    """The pairs that are taken of each direction: all of the largest, once; of a zero-shot one 0.

    The share of direction i is proportional to n_i^(1/T) (Arivazhagan et al. 2019, section 4.2).
    """
    most = max(pairs.values())
    return {name: round(most * (n / most) ** (1 / temperature)) for name, n in pairs.items()}


def join_split(name: str, corpus: Corpus) -> int:
    """Sample the training text of each direction, and join the sets held out; returns the copies.

    Each pair is repeated as often as all go into the number wanted; the rest is drawn at random.
    """
    copies, temperature = 0, corpus.split.temperature or 1.0
    texts = _texts(name, corpus, "split")
    counts = {direction: text.count("train") for direction, text in texts.items()}
    wanted = sampled_pairs(counts, temperature)
    with whole_folder(paths.folder(name, "split")) as unfinished:
        for direction, before in texts.items():
            after = before.at(unfinished / direction)
            after.path.mkdir()
            for held_out in before.held_out():
                for old, new in zip(before.files(held_out), after.files(held_out), strict=True):
                    join_files([old], new)
            _write_sampled(before, after, wanted[direction], corpus.split.seed)
            copies += wanted[direction] - counts[direction]
        _join(corpus, texts, unfinished, tagged=False)
    return copies


def join_tokens(name: str, corpus: Corpus) -> None:
    """Join the tokens of all directions, each source after the tag of its target language.

    Raises UserError at a source that has a tag as a word.
    """
    with whole_folder(paths.folder(name, "tokens")) as unfinished:
        _join(corpus, _texts(name, corpus, "tokens"), unfinished, tagged=True)


def join_filter_stats(name: str, corpus: Corpus, stage: str, copies: int = 0) -> None:
    """Join the filtering statistics of all directions; `copies` of pairs in train were added."""
    joined, settings = FilterStats(stage, name, ""), list[str]()
    for part in corpus.pairs(name):
        path, direction = paths.filter_stats(part, stage), part.rpartition("/")[2]
        filter_stats = read_record(FilterStatsRecord, path)
        settings.append(filter_stats.settings)
        for set_name, counts in filter_stats.sets.items():
            joined.sets.setdefault(_joined_name(set_name, direction), SetCounts()).add(counts)
    if copies:
        joined.sets["train"].pairs_out += copies
        joined.sets["train"].changed[COPIES] = copies
    joined.settings = fingerprint.of_settings(settings)
    joined.write(paths.filter_stats(name, stage))
    for part in corpus.pairs(name):  # no outputs of the stage
        paths.filter_stats(part, stage).unlink()
        with suppress(OSError):  # a later stage's, which failed
            paths.filter_stats(part, stage).parent.rmdir()


def _joined_name(set_name: str, direction: str) -> str:
    """test.NAME as test.DIRECTION-NAME, likewise train.PART; train and valid as they are."""
    kind, dot, name = set_name.partition(".")
    return f"{kind}.{direction}-{name}" if dot else kind


def _texts(name: str, corpus: Corpus, stage: str) -> dict[str, TextFolder]:
    """The text of each direction after a stage."""
    return {
        part.rpartition("/")[2]: TextFolder(paths.folder(part, stage), *pair.languages)
        for part, pair in corpus.pairs(name).items()
    }


def _write_sampled(before: TextFolder, after: TextFolder, wanted: int, seed: int) -> None:
    """Write as many pairs of train as are wanted; copies follow each other."""
    pairs = before.count("train")
    times = np.full(pairs, wanted // pairs if pairs else 0)
    drawn = np.random.Generator(np.random.PCG64(seed)).permutation(pairs)
    times[drawn[: wanted - int(times.sum())]] += 1
    with after.writer("train") as writer:
        for block in before.blocks("train"):
            of_block = times[block.first - 1 :][: len(block)].tolist()
            sides = (BytesIO(side).readlines() for side in (block.source, block.target))
            source, target = (
                b"".join(line * n for line, n in zip(lines, of_block, strict=True))
                for lines in sides
            )
            writer.write_packed(source, target)


def _join(corpus: Corpus, texts: Mapping[str, TextFolder], folder: Path, *, tagged: bool) -> None:
    """Write the sets of all directions, without train if not tagged; a zero-shot one is empty."""
    after, writers = TextFolder(folder, SOURCE, TARGET), dict[str, PairWriter]()
    with ExitStack() as opened:
        for direction, before in texts.items():
            names = before.names() if tagged else before.held_out()
            for set_name in names:
                joined = _joined_name(set_name, direction)
                if joined not in writers:
                    writers[joined] = opened.enter_context(after.writer(joined))
                for block in before.blocks(set_name):
                    source = b"".join(_tagged(corpus, block)) if tagged else block.source
                    writers[joined].write_packed(source, block.target)


def _tagged(corpus: Corpus, block: Block) -> Iterator[bytes]:
    """The sources of a block, each after the tag of its target, the language of the file."""
    known = [each.encode() for each in corpus.tags]
    before = tag(block.files[1].name.rpartition(".")[2]).encode()
    for number, line in enumerate(BytesIO(block.source).readlines(), block.first):
        for each in known if b"<2" in line else ():
            if each in line.split():
                place = f"{block.files[0]}:{number}"
                raise UserError(f"{place}: the text has {each.decode()!r}, a tag, as a word")
        yield before + (b" " if line != b"\n" else b"") + line
