"""How fast a corpus is prepared, stage by stage, beside the plain loop a user would write.

    python benchmarks/prepare.py --pairs 200000 --workers 1 2

The text (`--text`), of which no pair is there twice:
phrasebook: English and German, all different, by the grammar of the phrasebook
repeated: Multi30k's English and German, each round with its number before the last character of
    both sentences. (After it, the number would leave periods inside sentences, where sacremoses is
    three times as slow.) Words repeat, so that what remembers them is faster than on other text.
languages: Multi30k's English to German and to French, and its German to French, 87,000 pairs

Multi30k is read from BLEUPRINT_MIRROR. The stages run as `dvc repro` runs them, one process after
the other, in a scratch folder. Memory is the proportional set size of all processes of a stage
together, sampled ten times a second. With `pip install tokenizers`, Hugging Face's BPE is learned
from the same tokens, for comparison with learn_vocabulary.
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
from dataclasses import asdict, dataclass
from io import StringIO
from itertools import count, islice
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))

from bleuprint.config.experiment import load
from bleuprint.config.paths import RESOLVED
from bleuprint.corpus.download.fetch import Downloads, fetch
from bleuprint.pipeline.dvc_yaml import load_entries
from bleuprint.runtime.files import write_json
from bleuprint.text.parallel import Pair, PairWriter
from tools.phrasebook import english, german
from tools.phrasebook.grammar import Writer

ROOT = Path(__file__).parent.parent
# The scripts that prepare a corpus, in the order of dvc.yaml.
STAGES = [entry.script for entry in load_entries(ROOT).values() if entry.is_of_corpora()]
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
    """What a process and its children took: seconds, CPU seconds, peak memory in MB."""

    what: str
    seconds: float
    cpu: float
    memory: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", choices=list(TEXTS), default="phrasebook")
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--merges", type=int, default=10_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--no-plain", action="store_true", help="leave out the plain loop")
    parser.add_argument("--plain", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--hugging-face", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.plain:
        plain_loop(given.plain, given.merges)
        return
    if given.hugging_face:
        hugging_face(given.hugging_face, given.merges)
        return
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch)
        pairs = make_corpus(project / "inputs", TEXTS[given.text](), given.pairs)
        params = (ROOT / "recipes" / "phrasebook.yaml").read_text()
        _, _, systems = params.partition("\nsystems:\n")
        (project / "params.yaml").write_text(PARAMS.format(merges=given.merges) + systems)
        write_json(project / RESOLVED, load(project / "params.yaml").resolved())
        runs = {f"{n} workers": prepare(project, n) for n in given.workers}
        if importlib.util.find_spec("tokenizers"):
            runs["tokenizers"] = beside(
                project, "learn_vocabulary", "--hugging-face", "", given.merges
            )
        if not given.no_plain:
            runs["plain loop"] = beside(project, "all", "--plain", "inputs", given.merges)
    show(runs, pairs)
    report = {"text": given.text, "pairs": pairs, "merges": given.merges, "cpus": os.cpu_count()}
    costs = {run: [asdict(cost) for cost in stages] for run, stages in runs.items()}
    print(json.dumps({**report, "runs": costs}))


def make_corpus(folder: Path, text: Iterator[Pair], pairs: int) -> int:
    """Write the first `pairs` of a text, or all, to c.en and c.de; returns how many."""
    folder.mkdir(parents=True)
    written = 0
    with PairWriter(folder / "c.en", folder / "c.de") as writer:
        for pair in islice(text, pairs):
            writer.write(pair)
            written += 1
    return written


def _phrasebook() -> Iterator[Pair]:
    grammar, seen = Writer(seed=1), set[bytes]()
    while True:
        tree = grammar.sentence()
        pair = Pair(english.sentence(tree), german.sentence(tree))
        digest = hashlib.blake2b("\n".join(pair).encode(), digest_size=8).digest()
        if digest not in seen:
            seen.add(digest)
            yield pair


def _repeated() -> Iterator[Pair]:
    text = list(zip(_multi30k("en"), _multi30k("de"), strict=True))
    yield from (Pair(*pair) for pair in text)
    for number in count(1):
        for pair in text:
            yield Pair(*(f"{side[:-1]} ({number}){side[-1:]}" for side in pair))


def _languages() -> Iterator[Pair]:
    for source, target in (("en", "de"), ("en", "fr"), ("de", "fr")):
        yield from map(Pair, _multi30k(source), _multi30k(target))


def _multi30k(language: str) -> list[str]:
    if not (mirror := os.environ.get("BLEUPRINT_MIRROR")):
        sys.exit("set BLEUPRINT_MIRROR for Multi30k, or use --text phrasebook")
    experiment = load(ROOT / "recipes" / "table2-multi30k.yaml")
    for corpus in experiment.corpora.values():
        text = corpus.files.train["multi30k"]
        for name, file in zip((corpus.source, corpus.target), text.files, strict=True):
            if name == language:
                path = fetch(file, Downloads(mirror, Path(tempfile.gettempdir()), None))
                return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]
    raise AssertionError(language)


TEXTS: dict[str, Callable[[], Iterator[Pair]]] = {
    "phrasebook": _phrasebook,
    "repeated": _repeated,
    "languages": _languages,
}


def prepare(project: Path, workers: int) -> list[Cost]:
    """Run all data stages."""
    environment = {
        **os.environ,
        "BLEUPRINT_WORKERS": str(workers),
        "PYTHONPATH": str(ROOT / "src"),
    }
    environment.pop("DVC_ROOT", None)
    return [
        measure(
            stage.removesuffix("_text"),
            [sys.executable, str(ROOT / "stages" / f"{stage}.py"), "c"],
            project,
            environment,
        )
        for stage in STAGES
    ]


def beside(project: Path, what: str, option: str, folder: str, merges: int) -> list[Cost]:
    """Run one of this script's own parts in a process of its own."""
    command = [sys.executable, __file__, option, str(project / folder), "--merges", str(merges)]
    return [measure(what, command, project, dict(os.environ))]


def hugging_face(project: Path, merges: int) -> None:
    """Learn as many merges of BPE with Hugging Face's tokenizers, in all its threads."""
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.trainers import BpeTrainer

    files = [str(project / "data" / "tokens" / "c" / f"train.{side}") for side in ("en", "de")]
    characters = {character for file in files for character in Path(file).read_text()}
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = WhitespaceSplit()
    size = merges + 2 * len(characters)
    trainer = BpeTrainer(vocab_size=size, end_of_word_suffix="</w>", show_progress=False)
    tokenizer.train(files, trainer)


def plain_loop(folder: Path, merges: int) -> None:
    """Tokenize with sacremoses, learn and apply BPE with subword-nmt, and number the units."""
    from sacremoses import MosesTokenizer
    from subword_nmt.apply_bpe import BPE
    from subword_nmt.learn_bpe import learn_bpe

    words: Counter[str] = Counter()
    for language in ("en", "de"):
        moses = MosesTokenizer(language)

        def tokens(line: str, moses: MosesTokenizer = moses) -> str:
            found = moses.tokenize(line, escape=False)
            words.update(found)
            return " ".join(found)

        _each_line(folder / f"c.{language}", folder / f"tok.{language}", tokens)
    codes = StringIO()
    began = time.monotonic()
    learn_bpe([f"{word} {n}" for word, n in words.items()], codes, merges, is_dict=True)
    _say("learn_vocabulary", len(words), began)
    bpe, counts = BPE(codes), Counter[str]()

    def segmented(line: str) -> str:
        units = bpe.segment(line)
        counts.update(units.split())
        return str(units)

    for language in ("en", "de"):
        _each_line(folder / f"tok.{language}", folder / f"bpe.{language}", segmented)
    ids = {unit: str(number) for number, (unit, _) in enumerate(counts.most_common(), 4)}

    def numbered(line: str) -> str:
        return " ".join(ids[unit] for unit in line.split())

    for language in ("en", "de"):
        _each_line(folder / f"bpe.{language}", folder / f"ids.{language}", numbered)


def _each_line(before: Path, after: Path, change: Callable[[str], str]) -> None:
    began, number = time.monotonic(), 0
    with (
        before.open(encoding="utf-8", newline="\n") as lines,
        after.open("w", encoding="utf-8", newline="\n") as out,
    ):
        for line in lines:
            out.write(change(line.rstrip("\n")) + "\n")
            number += 1
    _say(after.name, number, began)


def _say(what: str, number: int, began: float) -> None:
    rate = number / (time.monotonic() - began)
    print(f"plain loop: {what}: {rate:,.0f} a second", file=sys.stderr, flush=True)


def measure(what: str, command: list[str], folder: Path, environment: dict[str, str]) -> Cost:
    """Run a command to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, env=environment)
    peak = [0.0]
    watch = threading.Thread(target=_watch, args=(process, peak))
    watch.start()
    if process.wait():
        sys.exit(f"{what} failed")
    seconds = time.monotonic() - began
    watch.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(what, round(seconds, 2), round(cpu, 2), round(peak[0] / 1e6, 1))


def _watch(process: "subprocess.Popen[bytes]", peak: list[float]) -> None:
    """Keep the largest memory of a process and its children while it runs."""
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
                continue
        peak[0] = max(peak[0], total)
        time.sleep(0.1)


def show(runs: dict[str, list[Cost]], pairs: int) -> None:
    """Print a table, and how much faster than the plain loop each run was."""
    print(f"{'':12}{'stage':12}{'pairs/s':>12}{'seconds':>10}{'CPU s':>10}{'MB':>8}")
    totals = {}
    for run, costs in runs.items():
        total = Cost(
            "in all",
            sum(cost.seconds for cost in costs),
            sum(cost.cpu for cost in costs),
            max(cost.memory for cost in costs),
        )
        totals[run] = total.seconds
        for cost in [*costs, total] if len(costs) > 1 else costs:
            rate = pairs / cost.seconds
            row = f"{rate:>12,.0f}{cost.seconds:>10.1f}{cost.cpu:>10.1f}{cost.memory:>8.0f}"
            print(f"{run:12}{cost.what:12}{row}")
    if slow := totals.pop("plain loop", None):
        for run, seconds in totals.items():
            if run == "tokenizers":
                continue
            print(f"{run}: {slow / seconds:.2f} times as fast as the plain loop")


if __name__ == "__main__":
    main()
