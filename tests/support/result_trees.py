"""What the tests of scoring and reporting share: small settings and results, on disk or not."""

import dataclasses
import hashlib
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from ruamel.yaml import YAML

import systems
from bleuprint.config.experiment import Corpus, Settings, load
from bleuprint.config.paths import Cell, folder
from bleuprint.config.system import Average
from bleuprint.corpus.test_sets import describe_test_sets
from bleuprint.decoding.attention import (
    ATTENTION,
    KINDS,
    AttentionMap,
    SentenceAttention,
    Weights,
    write_attention,
)
from bleuprint.report.grid import Grid
from bleuprint.report.records import Data, Fingerprints, Length, Metric, Paired, Record
from bleuprint.runtime.files import sha256_of, write_json
from bleuprint.runtime.fingerprint import of_settings
from bleuprint.scoring.bleu_variants import BleuVariant
from bleuprint.scoring.breakdown import ByCount, ByLength
from bleuprint.scoring.score import score_cell
from bleuprint.scoring.significance import PValues
from bleuprint.tracking.timings import Timing, Training

STAGES = ("download", "clean", "dedup", "filter", "split", "tokenize", "binarize")

# Every word of every corpus below begins so: no report may hold it.
WORD = "qzx"


def settings_in(
    root: Path,
    systems: tuple[str, ...] = ("tiny", "small"),
    corpora: dict[str, tuple[str, ...]] | None = None,
    seeds: tuple[int, ...] = (1,),
) -> Settings:
    """Write params.yaml and read it; `corpora` maps names that end in a pair to test sets."""
    corpora = corpora or {"news-en-de": ("first", "second"), "talks-en-fr": ("only",)}
    params = {
        "experiment": "trial_run",
        "seeds": list(seeds),
        "published": [],
        "corpora": {name: _corpus(name, tests) for name, tests in corpora.items()},
        "systems": {name: _system() for name in systems},
    }
    root.mkdir(parents=True, exist_ok=True)
    with (root / "params.yaml").open("w", encoding="utf-8") as file:
        YAML().dump(params, file)
    # names the code whose fingerprint the records hold; that of a tree is none
    shutil.copy(Path(__file__).parents[2] / "dvc.yaml", root)
    return load(root / "params.yaml")


def write_texts(root: Path, settings: Settings, lines: int = 40) -> None:
    """Write test sets, described, and ledgers of every corpus; sentences of WORD's words."""
    for name, corpus in settings.corpora.items():
        split, tokens = folder(name, "split", root), folder(name, "tokens", root)
        split.mkdir(parents=True)
        for set_name in ("train", *(f"test.{test}" for test in corpus.files.tests)):
            for language in (corpus.source, corpus.target):
                text = _sentences(f"{name} {set_name} {language}", lines)
                write_lines(split / f"{set_name}.{language}", text)
                words = [f"{line.removesuffix('.')} ." for line in text]
                write_lines(tokens / f"{set_name}.{language}", words)
        if corpus.files.tests:
            describe(root, settings, name)
        for number, stage in enumerate(STAGES):
            write_json(root / "data" / "ledgers" / name / f"{stage}.json", _ledger(stage, number))
        write_json(root / "data" / "statistics" / name / "statistics.json", _statistics(corpus))


def describe(root: Path, settings: Settings, corpus: str) -> None:
    """Write what describe_tests would."""
    folders = [folder(corpus, stage, root) for stage in ("split", "tokens", "tests")]
    describe_test_sets(corpus, settings.corpus(corpus), *folders)


def write_cell(root: Path, settings: Settings, cell: Cell, errors: float) -> None:
    """Write what train and translate would, with a share of wrong words; then score it."""
    rng = random.Random(str(cell))
    corpus = settings.corpus(cell.corpus)
    for test in corpus.files.tests:
        name = f"test.{test}.{corpus.target}"
        path = root / "data" / "split" / cell.corpus / name
        references = path.read_text("utf-8").split("\n")[:-1]
        wrong = [
            " ".join(f"{WORD}wrong" if rng.random() < errors else word for word in line.split())
            for line in references
        ]
        write_lines((root / cell.results) / "hypotheses" / name, wrong)
    write_json((root / cell.results) / "training.json", _training(settings, cell))
    write_json((root / cell.results) / "curves.json", curves_of(cell))
    write_json((root / cell.timings) / "train.json", timing_of(cell))
    write_json((root / cell.timings) / "translate.json", {"seconds": 2.5, "sentences": 40})
    write_translation(root, settings, cell)
    write_maps(root, settings, cell)
    score_cell(settings, cell.system, cell.corpus, cell.seed, root)


def write_translation(root: Path, settings: Settings, cell: Cell) -> None:
    """Write that the cell's own model, with its own settings, made its translations."""
    folder = root / cell.results
    decode = dataclasses.asdict(settings.system(cell.system).decode)
    hypotheses = {path.name: sha256_of(path) for path in (folder / "hypotheses").iterdir()}
    made = {"model": _fingerprint(cell), "decode": decode, "hypotheses": hypotheses}
    write_json(folder / "translation.json", made)


def write_maps(root: Path, settings: Settings, cell: Cell) -> None:
    """Write attention of two layers and two heads, drawn by lot, on the first line of each test."""
    corpus = settings.corpus(cell.corpus)
    kept = {}
    for test in corpus.files.tests:
        name = f"test.{test}.{corpus.target}"
        path = root / cell.results / "hypotheses" / name
        written = [*path.read_text("utf-8").split("\n")[0].split(), "</s>"]
        read = [f"{WORD}{number}" for number in range(4)] + ["</s>"]
        sides = ((written, read), (read, read), (written, ["<s>", *written[:-1]]))
        draw = np.random.default_rng(len(cell.system))
        maps = {
            kind: AttentionMap(rows, columns, _weights(draw, len(rows), len(columns)))
            for kind, (rows, columns) in zip(KINDS, sides, strict=True)
        }
        kept[test] = sha256_of(path), [SentenceAttention(1, maps)]
    write_attention(root / cell.results / ATTENTION, kept)


def write_all(root: Path, settings: Settings) -> None:
    """Texts, and a result for every cell: the later a system, the fewer its errors."""
    write_texts(root, settings)
    for number, system in enumerate(settings.systems):
        for corpus in settings.corpora:
            for seed in settings.seeds:
                write_cell(root, settings, Cell(system, corpus, seed), 0.3 / (number + 1))


def write_lines(path: Path, lines: list[str]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return sha256_of(path)


def curves_of(cell: Cell) -> dict[str, Any]:
    """Five points and two validations, of which the second is the better."""
    start = 8.0 if cell.system == "tiny" else 7.5
    training = [
        {
            "update": 100 * i,
            "tokens": 160_000 * i,
            "loss": start - i,
            "learning_rate": 0.001 / i,
            "gradient_norm": 1.0 + 1.0 / i,
        }
        for i in range(1, 6)
    ]
    validation = [
        {"update": 250, "loss": start - 5, "bleu": 20.0},
        {"update": 500, "loss": start - 6.75, "bleu": 30.0},
    ]
    return {"training": training, "validation": validation}


def timing_of(cell: Cell) -> dict[str, Any]:
    seconds = 3725.0 if cell.system == "tiny" else 59.6
    return {
        "seconds": seconds,
        "device": "Test CPU",
        "processes": 1,
        "threads": 2,
        "commit": "0123456789abcdef",
        "tokens_per_second": 1234.5,
        "devices": 1,
        "sustained_flops": 3e12,
        "sustained_from": "measured",
        "flops_by_time": seconds * 3e12,
        "peak_flops": 4e12,
        "peak_from": "known",
        "mfu": 0.415,
        "versions": "Python 3.11.0, torch 2.0.0",
        "rates": [1000.0, 1200.0, 1300.0, 1250.0, 1422.5],
    }


def record(system: str, corpus: str, test: str, bleu: float, **changes: Any) -> Record:
    """A record made by hand: the pair is the end of the corpus's name."""
    source, target = corpus.split("-")[-2:]
    values = {
        "system": system,
        "corpus": corpus,
        "seed": 1,
        "test": test,
        "source": source,
        "target": target,
        "bleu": Metric(bleu, bleu - 1, bleu + 2, "nrefs:1|tok:13a|version:2.6.0"),
        "chrf": Metric(bleu + 20, bleu + 19, bleu + 21, "nrefs:1|nc:6|version:2.6.0"),
        "ter": Metric(bleu - 9, bleu - 10, bleu - 8, "nrefs:1|tok:tercom|version:2.6.0"),
        "length": Length(980, 1000, 0.98),
        "paired": None,
        "reconciliation": (
            BleuVariant("lower-cased", bleu + 1.5, "case:lc|tok:13a", 1000, "ab" * 32, "cd" * 32),
            BleuVariant("intl", bleu - 0.5, "tok:intl", 1000, "ab" * 32, "cd" * 32),
        ),
        "by_length": (ByLength("1-10", 400, bleu + 3), ByLength("over 50", 600, bleu - 3)),
        "by_count": (ByCount("0", 50, 10, 0.2), ByCount("100+", 1200, 600, 0.5)),
        "lines": 1000,
        "parameters": 2_570_000,
        "training_flops": 3.28e18,
        "source_tokens": 9_000_000,
        "target_tokens": 8_120_000,
        "updates": 8000,
        "decode": dataclasses.asdict(systems.DECODE),
        "fingerprints": Fingerprints("f1" * 32, "5e" * 32, "c0" * 32),
        "data": Data("b1" * 32, "50" * 32, "4e" * 32, "47" * 32),
    }
    return Record(**{**values, **changes})


def against(baseline: str, bootstrap: float, randomisation: float | None = None) -> Paired:
    """Both p-values, the same unless the second is given."""
    second = bootstrap if randomisation is None else randomisation
    return Paired(baseline, PValues(bootstrap, second))


def _weights(draw: np.random.Generator, rows: int, columns: int) -> Weights:
    return draw.dirichlet([0.3] * columns, (2, 2, rows)).astype(np.float32)


def _sentences(seed: str, lines: int) -> list[str]:
    rng = random.Random(seed)
    words = [WORD + "".join(rng.choices("abcdefgh", k=4)) for _ in range(60)]
    return [" ".join(rng.choices(words, k=rng.randint(6, 14))) + "." for _ in range(lines)]


def _ledger(stage: str, number: int) -> dict[str, Any]:
    train = {
        "pairs_in": 10_000 - number,
        "pairs_out": 9_999 - number,
        "changed": {f"{stage}_edit": 7, "idle_edit": 0},
        "dropped": {f"{stage}_rule": 1, "idle_rule": 0},
        "samples": {f"{stage}_rule": [{"pair": 1, "source": f"{WORD}s", "target": f"{WORD}t"}]},
    }
    dropped = {"idle_rule": 0}
    quiet = {"pairs_in": 40, "pairs_out": 40, "changed": {}, "dropped": dropped, "samples": {}}
    return {"stage": stage, "corpus": "x", "sets": {"train": train, "test.first": quiet}}


def _statistics(corpus: Corpus) -> dict[str, Any]:
    side = {"words": 90, "tokens": 120, "unk": 3, "max_tokens": 17}
    side |= {"sentence_lengths": [0, 0, 0, 30], "tokens_per_word": [70, 10, 10, 0]}
    languages = corpus.source, corpus.target
    names = ["train", *(f"test.{test}" for test in corpus.files.tests)]
    return {
        "joint": True,
        "sets": {name: dict.fromkeys(languages, side) for name in names},
        "vocabularies": {key: {"size": 96, "below_10": 8, "below_100": 30} for key in languages},
    }


def _fingerprint(cell: Cell) -> str:
    """Of a training: each cell has its own."""
    return hashlib.sha256(str(cell).encode()).hexdigest()


def _training(settings: Settings, cell: Cell) -> dict[str, Any]:
    system = settings.system(cell.system)
    return {
        "parameters": 1_000_000 if cell.system == "tiny" else 4_000_000,
        "updates": 500,
        "source_tokens": 700_000 + cell.seed,
        "target_tokens": 800_000 + cell.seed,
        "flops": 4.2e12 if cell.system == "tiny" else 9.9e13,
        "skipped": 0,
        "valid_loss": curves_of(cell)["validation"][-1]["loss"],
        "fingerprint": _fingerprint(cell),
        "settings": of_settings(system.model, system.train, cell.seed),
        "code": "c0" * 32,
        "data": "b1" * 32,
    }


def _corpus(name: str, tests: tuple[str, ...]) -> dict[str, Any]:
    source, target = name.split("-")[-2:]
    pair = {
        "license_and_citation": "own",
        "source": {"path": "inputs/a"},
        "target": {"path": "inputs/b"},
    }
    sets = {"train": {"all": pair}, "valid": {}, "tests": {test: {"all": pair} for test in tests}}
    return {
        "source": source,
        "target": target,
        "license_and_citation": {"own": {"license": "none", "bibtex": "@misc{own,}"}},
        "files": sets,
        "clean": {"unicode": {"form": "NFC"}},
        "dedup": {"pairs": True, "sources": False, "targets": False, "decontaminate": "normalized"},
        "filter": {"length": {"min": 1, "max": 100}, "ratio": {"max": 3.0}},
        "split": {"valid": 0.05, "test": 0.05, "seed": 1},
        "tokenize": {"name": "moses", "lowercase": False, "hyphens": False, "escape": False},
        "vocabulary": {
            "bpe": {"num_merges": 100, "joint": True, "threshold": 0, "engine": "incremental"}
        },
    }


def _system() -> dict[str, Any]:
    system = dataclasses.replace(
        systems.SYSTEM, train=systems.train(max_updates=10), average=Average(last=1)
    )
    return systems.as_yaml(system)  # type: ignore[no-any-return]


def timings(records: list[Record], missing: str = "") -> dict[object, Timing]:
    measured = {}
    for cell in dict.fromkeys(one.cell for one in records):
        seconds = 43_200.0 if cell.corpus.startswith("news") else 61.0
        training = Training(
            *(seconds, "Fast Chip", 8, 4, "abcdef0123456789", 51_234.4),
            devices=4,
            sustained_flops=9.5e12,
            sustained_from="paper",
            flops_by_time=seconds * 4 * 9.5e12,
            peak_flops=9.3e12,
            peak_from="known",
            mfu=0.3509,
        )
        measured[cell] = Timing(None if cell.system == missing else training, 9.5)
    return measured


def rows_of(grid: Grid) -> dict[str, dict[str, str]]:
    """A grid's cells by row and column head."""
    heads = [f"{column.group} {column.label}".strip() for column in grid.columns]
    return {row.cells[0]: dict(zip(heads, row.cells, strict=True)) for row in grid.rows}
