"""Measures how fast a corpus is prepared, stage by stage, beside the plain loop a user would write.

    python benchmarks/prepare.py --pairs 200000 --workers 1 2

The text (`--text`), in which no sentence pair occurs twice:

- phrasebook: English and German, all different, by the grammar of the phrasebook
- repeated: Multi30k's English and German, again and again, each time with the number of the round
  before the last character of both sentences. (After it, the number would leave periods inside
  sentences, where sacremoses is three times as slow.) Words repeat, so that what remembers them is
  faster than on other text.
- languages: Multi30k's English to German and to French, and its German to French, 87,000 pairs

Multi30k is read from BLEUPRINT_MIRROR. The stages run as `dvc repro` runs them, one process after
the other, in a scratch folder. Memory is the proportional set size of all processes of a stage
together, sampled ten times a second. With `pip install tokenizers`, Hugging Face's BPE is learned
from the same tokens, for comparison with the stage learn_vocabulary.
"""

import argparse
import gzip
import hashlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import count, islice
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))

from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import RESOLVED
from bleuprint.corpus.download.fetch import Downloads, fetch
from bleuprint.pipeline.dvc_yaml import load_entries
from bleuprint.runtime.json_files import write_json
from bleuprint.text.parallel import Pair, PairWriter
from tools.phrasebook import english, german
from tools.phrasebook.grammar import Writer

ROOT = Path(__file__).parent.parent
# The scripts that prepare a corpus, in the order of dvc.yaml.
STAGES = [entry.script for entry in load_entries(ROOT).values() if entry.is_per_corpus()]
PLAIN_LOOP = "plain loop"
TOKENIZERS = "tokenizers"
# params.yaml without its systems; they are copied from the recipe phrasebook.
PARAMS = """\
experiment: benchmark
seeds: [1]
corpora:
  c:
    source: "en"
    target: "de"
    license_and_citation: {{c: {{license: "-", bibtex: "@misc{{c,}}"}}}}
    files:
      train:
        c: {{license_and_citation: c, source: {{path: inputs/c.en}}, target: {{path: inputs/c.de}}}}
    filter: {{length: {{max: 250}}, length_ratio: {{max: 9.0}}}}
    split: {{valid: 0.005, test: 0.005}}
    vocabulary: {{bpe: {{num_merges: {merges}}}}}
systems:
"""


@dataclass(frozen=True)
class Cost:
    """What a process and its children took.

    Attributes:
        label: The name of the stage, or of the comparison.
        seconds: Time on the clock.
        cpu: CPU seconds of all processes together.
        memory: Peak of the proportional set sizes of all processes together, in MB.
    """

    label: str
    seconds: float
    cpu: float
    memory: float

    def as_json(self) -> dict[str, Any]:
        """Return the cost as benchmarks/scaling.py reads it."""
        return {
            "what": self.label,
            "seconds": self.seconds,
            "cpu": self.cpu,
            "memory": self.memory,
        }


def main() -> None:
    """Measure all stages, or run one of the comparisons in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--text", choices=list(TEXTS), default="phrasebook")
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--merges", type=int, default=10_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--no-plain", action="store_true", help="leave out the plain loop")
    # This script calls itself with these two, so that each comparison has its own process.
    parser.add_argument("--plain", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--hugging-face", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plain:
        run_plain_loop(arguments.plain, arguments.merges)
    elif arguments.hugging_face:
        learn_with_hugging_face(arguments.hugging_face, arguments.merges)
    else:
        compare(arguments)


def compare(arguments: argparse.Namespace) -> None:
    """Prepare the text with each number of workers and by a plain loop; print what each costs.

    Args:
        arguments: The arguments of the command line.
    """
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch)
        pairs = write_corpus(project / "inputs", TEXTS[arguments.text](), arguments.pairs)
        write_settings(project, arguments.merges)
        costs_by_way = {}
        for workers in arguments.workers:
            costs_by_way[f"{workers} workers"] = run_stages(project, workers)
        if importlib.util.find_spec("tokenizers"):
            options = ["--hugging-face", str(project)]
            cost = call_this_script("learn_vocabulary", options, project, arguments.merges)
            costs_by_way[TOKENIZERS] = [cost]
        if not arguments.no_plain:
            options = ["--plain", str(project / "inputs")]
            cost = call_this_script("all", options, project, arguments.merges)
            costs_by_way[PLAIN_LOOP] = [cost]
    print_costs(costs_by_way, pairs)
    runs = {}
    for way, costs in costs_by_way.items():
        runs[way] = [cost.as_json() for cost in costs]
    report = {
        "text": arguments.text,
        "pairs": pairs,
        "merges": arguments.merges,
        "cpus": os.cpu_count(),
        "runs": runs,
    }
    print(json.dumps(report))


def write_corpus(folder: Path, text: Iterator[Pair], max_pairs: int) -> int:
    """Write the first pairs of a text to c.en and c.de; return how many were written.

    Args:
        folder: The folder of both files.
        text: The sentence pairs.
        max_pairs: The largest number of pairs to write.
    """
    folder.mkdir(parents=True)
    written = 0
    with PairWriter(folder / "c.en", folder / "c.de") as writer:
        for pair in islice(text, max_pairs):
            writer.write(pair)
            written += 1
    return written


def write_settings(project: Path, merges: int) -> None:
    """Write params.yaml and reports/resolved.json of the benchmark's project.

    Args:
        project: The folder of the benchmark's project.
        merges: The number of BPE merge operations.
    """
    phrasebook = (ROOT / "recipes" / "phrasebook.yaml").read_text()
    _, _, systems = phrasebook.partition("\nsystems:\n")
    params = project / "params.yaml"
    params.write_text(PARAMS.format(merges=merges) + systems)
    write_json(project / RESOLVED, load_settings(params).resolved())


def phrasebook_text() -> Iterator[Pair]:
    """Yield different English and German sentences of the phrasebook's grammar, without end."""
    grammar = Writer(seed=1)
    digests_seen = set[bytes]()
    while True:
        tree = grammar.sentence()
        pair = Pair(english.sentence(tree), german.sentence(tree))
        # Millions of pairs are remembered, so only eight bytes of each.
        digest = hashlib.blake2b("\n".join(pair).encode(), digest_size=8).digest()
        if digest not in digests_seen:
            digests_seen.add(digest)
            yield pair


def repeated_text() -> Iterator[Pair]:
    """Yield Multi30k's English and German without end, to get a text of any length.

    From the second round on, sentences get a number, so that none is removed as a duplicate.
    """
    pairs = list(map(Pair, multi30k("en"), multi30k("de")))
    yield from pairs
    for number in count(1):
        for pair in pairs:
            yield Pair(with_number(pair.source, number), with_number(pair.target, number))


def with_number(sentence: str, number: int) -> str:
    """Insert a number in brackets before the last character of a sentence."""
    return f"{sentence[:-1]} ({number}){sentence[-1:]}"


def text_of_languages() -> Iterator[Pair]:
    """Yield Multi30k from English to German, English to French and German to French."""
    for source, target in (("en", "de"), ("en", "fr"), ("de", "fr")):
        yield from map(Pair, multi30k(source), multi30k(target))


def multi30k(language: str) -> list[str]:
    """Return Multi30k's training sentences in a language.

    They are read from the folder that the environment variable BLEUPRINT_MIRROR names.

    Args:
        language: The language, such as `de`.
    """
    mirror = os.environ.get("BLEUPRINT_MIRROR")
    if not mirror:
        sys.exit("set BLEUPRINT_MIRROR for Multi30k, or use --text phrasebook")
    experiment = load_settings(ROOT / "recipes" / "table2-multi30k.yaml")
    for corpus in experiment.corpora.values():
        text = corpus.files.train["multi30k"]
        languages = (corpus.source, corpus.target)
        for file_language, file in zip(languages, text.files, strict=True):
            if file_language == language:
                path = fetch(file, Downloads(mirror, Path(tempfile.gettempdir()), None))
                lines = gzip.decompress(path.read_bytes()).decode().split("\n")
                return lines[:-1]  # without the empty string after the last line end
    raise AssertionError(language)


TEXTS: dict[str, Callable[[], Iterator[Pair]]] = {
    "phrasebook": phrasebook_text,
    "repeated": repeated_text,
    "languages": text_of_languages,
}


def run_stages(project: Path, workers: int) -> list[Cost]:
    """Run all stages that prepare the corpus, with this many workers.

    Args:
        project: The folder of the benchmark's project.
        workers: The number of worker processes.

    Returns:
        The cost of each stage.
    """
    environment = {
        **os.environ,
        "BLEUPRINT_WORKERS": str(workers),
        "PYTHONPATH": str(ROOT / "src"),
    }
    environment.pop("DVC_ROOT", None)  # set if this runs inside a DVC stage
    costs = []
    for stage in STAGES:
        command = [sys.executable, str(ROOT / "stages" / f"{stage}.py"), "c"]
        costs.append(measure(stage.removesuffix("_text"), command, project, environment))
    return costs


def call_this_script(label: str, options: list[str], project: Path, merges: int) -> Cost:
    """Run one of this script's comparisons in a process of its own.

    Args:
        label: The name of the comparison in tables.
        options: The options of this script that choose the comparison.
        project: The folder of the benchmark's project.
        merges: The number of BPE merge operations.

    Returns:
        What the process costs.
    """
    command = [sys.executable, __file__, *options, "--merges", str(merges)]
    return measure(label, command, project, dict(os.environ))


def learn_with_hugging_face(project: Path, merges: int) -> None:
    """Learn the same number of BPE merges with Hugging Face's tokenizers, in all its threads.

    Args:
        project: The folder of the benchmark's project.
        merges: The number of BPE merge operations.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.trainers import BpeTrainer

    folder = project / "data" / "tokens" / "c"
    files = [str(folder / "train.en"), str(folder / "train.de")]
    characters = set[str]()
    for file in files:
        characters.update(Path(file).read_text())
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = WhitespaceSplit()
    # The vocabulary has each character twice, inside a word and at its end, and each merge.
    vocabulary_size = merges + 2 * len(characters)
    trainer = BpeTrainer(
        vocab_size=vocabulary_size,
        end_of_word_suffix="</w>",
        show_progress=False,
    )
    tokenizer.train(files, trainer)


def run_plain_loop(folder: Path, merges: int) -> None:
    """Prepare a corpus as a simple script would: in one process, line by line.

    It tokenizes with sacremoses, learns and applies BPE with subword-nmt, and numbers the subwords.
    The comparison shows what the stages of bleuprint gain.

    Args:
        folder: The folder with the text, c.en and c.de.
        merges: The number of BPE merge operations.
    """
    from sacremoses import MosesTokenizer
    from subword_nmt.apply_bpe import BPE
    from subword_nmt.learn_bpe import learn_bpe

    languages = ("en", "de")
    word_counts: Counter[str] = Counter()
    for language in languages:
        moses = MosesTokenizer(language)

        def tokenize(line: str, moses: MosesTokenizer = moses) -> str:
            tokens = moses.tokenize(line, escape=False)
            word_counts.update(tokens)
            return " ".join(tokens)

        rewrite_lines(folder / f"c.{language}", folder / f"tok.{language}", tokenize)
    codes = StringIO()
    start = time.monotonic()
    dictionary = [f"{word} {word_count}" for word, word_count in word_counts.items()]
    learn_bpe(dictionary, codes, merges, is_dict=True)
    print_rate("learn_vocabulary", len(word_counts), start)
    bpe = BPE(codes)
    unit_counts: Counter[str] = Counter()

    def segment(line: str) -> str:
        segmented = str(bpe.segment(line))
        unit_counts.update(segmented.split())
        return segmented

    for language in languages:
        rewrite_lines(folder / f"tok.{language}", folder / f"bpe.{language}", segment)
    ids = {}
    # The ids 0 to 3 are those of four special tokens, such as padding.
    for number, (unit, _) in enumerate(unit_counts.most_common(), 4):
        ids[unit] = str(number)

    def number_units(line: str) -> str:
        return " ".join(ids[unit] for unit in line.split())

    for language in languages:
        rewrite_lines(folder / f"bpe.{language}", folder / f"ids.{language}", number_units)


def rewrite_lines(input_path: Path, output_path: Path, change: Callable[[str], str]) -> None:
    """Change each line of a file, write it to another file, and print the lines per second.

    Args:
        input_path: The file to read.
        output_path: The file to write.
        change: Returns the changed line.
    """
    start = time.monotonic()
    lines_written = 0
    with (
        input_path.open(encoding="utf-8", newline="\n") as lines,
        output_path.open("w", encoding="utf-8", newline="\n") as output,
    ):
        for line in lines:
            output.write(change(line.rstrip("\n")) + "\n")
            lines_written += 1
    print_rate(output_path.name, lines_written, start)


def print_rate(label: str, number: int, start: float) -> None:
    """Print how many items a second the plain loop has done since `start`.

    Args:
        label: What was done, in words.
        number: The number of items.
        start: The time of the start, by `time.monotonic`, in seconds.
    """
    rate = number / (time.monotonic() - start)
    print(f"plain loop: {label}: {rate:,.0f} a second", file=sys.stderr, flush=True)


def measure(label: str, command: list[str], folder: Path, environment: dict[str, str]) -> Cost:
    """Run a command to its end, and return its seconds, CPU seconds and peak memory.

    If the command fails, this process exits.

    Args:
        label: The name of the command in tables.
        command: The command.
        folder: The folder in which it runs.
        environment: Its environment variables.
    """
    usage_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, env=environment)
    peak_bytes = [0]
    watcher = threading.Thread(target=watch_memory, args=(process, peak_bytes))
    watcher.start()
    if process.wait():
        sys.exit(f"{label} failed")
    seconds = time.monotonic() - start
    watcher.join()
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_before = usage_before.ru_utime + usage_before.ru_stime
    cpu_after = usage_after.ru_utime + usage_after.ru_stime
    return Cost(
        label,
        seconds=round(seconds, 2),
        cpu=round(cpu_after - cpu_before, 2),
        memory=round(peak_bytes[0] / 1e6, 1),
    )


def watch_memory(process: "subprocess.Popen[bytes]", peak_bytes: list[int]) -> None:
    """Watch the memory of a process and its children while it runs; meant for a thread.

    Args:
        process: The process.
        peak_bytes: A list of one number, which is replaced by the largest sum of their memory.
    """
    root = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            family = [root, *root.children(recursive=True)]
        except psutil.Error:
            break
        total = 0
        for member in family:
            try:
                total += member.memory_full_info().pss
            except psutil.Error:
                continue  # ended since the list was made
        peak_bytes[0] = max(peak_bytes[0], total)
        time.sleep(0.1)


def print_costs(costs_by_way: dict[str, list[Cost]], pairs: int) -> None:
    """Print a table, and how much faster than the plain loop each way was.

    Args:
        costs_by_way: The costs of the stages for each way to prepare the text.
        pairs: The number of sentence pairs.
    """
    print(f"{'':12}{'stage':12}{'pairs/s':>12}{'seconds':>10}{'CPU s':>10}{'MB':>8}")
    total_seconds = {}
    for way, costs in costs_by_way.items():
        total = Cost(
            "in all",
            seconds=sum(cost.seconds for cost in costs),
            cpu=sum(cost.cpu for cost in costs),
            memory=max(cost.memory for cost in costs),
        )
        total_seconds[way] = total.seconds
        shown = [*costs, total] if len(costs) > 1 else costs
        for cost in shown:
            rate = pairs / cost.seconds
            row = f"{rate:>12,.0f}{cost.seconds:>10.1f}{cost.cpu:>10.1f}{cost.memory:>8.0f}"
            print(f"{way:12}{cost.label:12}{row}")
    if PLAIN_LOOP not in total_seconds:
        return
    plain_seconds = total_seconds.pop(PLAIN_LOOP)
    total_seconds.pop(TOKENIZERS, None)  # it has done one stage only
    for way, seconds in total_seconds.items():
        print(f"{way}: {plain_seconds / seconds:.2f} times as fast as the plain loop")


if __name__ == "__main__":
    main()
