"""Folders with the settings, texts and results of small experiments, which no stage has run."""

import dataclasses
import hashlib
import random
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
from ruamel.yaml import YAML

import systems
from bleuprint.config.experiment import Settings, load_settings
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.config.runs import training_settings_sha256
from bleuprint.config.system import Average
from bleuprint.corpus.test_sets import describe_test_sets
from bleuprint.decoding.attention_maps import (
    ATTENTION_FILE,
    ATTENTION_KINDS,
    AttentionMap,
    SentenceAttention,
    write_attention,
)
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.scoring import significance
from bleuprint.scoring.score import score_run
from bleuprint.tracking import timings
from params import corpus_entry, write_resolved

STAGES = ("download", "clean", "dedup", "filter", "split", "tokenize", "binarize")

# Every word of every corpus below begins so: no report may contain it.
WORD = "qzx"

# The files that `write_all` has written, by what decides their content.
_WRITTEN: dict[tuple, dict[str, bytes]] = {}

# How many samples and trials the tests of significance draw.
_SAMPLES = {name: getattr(significance, name) for name in ("TRIALS", "RESAMPLES")}


class Experiment(NamedTuple):
    """An experiment in a folder.

    Attributes:
        root: The folder.
        settings: What its params.yaml says.
    """

    root: Path
    settings: Settings


def few_samples(patch):
    """Draw fewer samples in significance tests, which take most of the time of a report."""
    for name in _SAMPLES:
        patch.setattr(significance, name, 200)


def all_samples(patch):
    """Draw as many samples as the program does, after `few_samples`."""
    for name, number in _SAMPLES.items():
        patch.setattr(significance, name, number)


def settings_in(
    root, systems=("tiny", "small"), corpora=None, seeds=(1,), external=None, attention=None
):
    """Write a params.yaml and what `resolve` writes, and return the settings.

    Args:
        root: The folder of the experiment.
        systems: The names of the systems, which have the same settings.
        corpora: The test sets of each corpus, whose name ends in its languages.
        seeds: The seeds of the trainings.
        external: The external systems by name, as in params.yaml.
        attention: The setting `decode.attention` of the systems.
    """
    if corpora is None:
        corpora = {"news-en-de": ("first", "second"), "talks-en-fr": ("only",)}
    params = {
        "experiment": "trial_run",
        "seeds": list(seeds),
        "published": [],
        "corpora": {name: _corpus(name, tests) for name, tests in corpora.items()},
        "systems": {name: _system(attention) for name in systems} | (external or {}),
    }
    root.mkdir(parents=True, exist_ok=True)
    with (root / "params.yaml").open("w", encoding="utf-8") as file:
        YAML().dump(params, file)
    # It names the code whose fingerprint the records contain; here that is the same for all.
    shutil.copy(Path(__file__).parents[2] / "dvc.yaml", root)
    write_resolved(root)
    return load_settings(root / "params.yaml")


def write_texts(root, settings, lines=100):
    """Write what the data stages write: texts of WORD's words, descriptions and statistics."""
    for name, corpus in settings.corpora.items():
        split = corpus_folder(name, "split", root)
        tokens = corpus_folder(name, "tokens", root)
        split.mkdir(parents=True)
        test_sets = [f"test.{test}" for test in corpus.files.tests]
        for set_name in ("train", *test_sets):
            for language in (corpus.source, corpus.target):
                text = _sentences(f"{name} {set_name} {language}", lines)
                write_lines(split / f"{set_name}.{language}", text)
                tokenized = [f"{line.removesuffix('.')} ." for line in text]
                write_lines(tokens / f"{set_name}.{language}", tokenized)
        if test_sets:
            describe(root, settings, name)
        for number, stage in enumerate(STAGES):
            path = root / "data" / "filter_stats" / name / f"{stage}.json"
            write_json(path, _filter_stats(stage, number))
        write_json(root / "data" / "corpus_stats" / name / "statistics.json", _statistics(corpus))


def describe(root, settings, corpus):
    """Write the descriptions of test sets, as the stage test_stats does."""
    describe_test_sets(corpus, settings.corpus(corpus), root)


def write_run(root, settings, run, errors):
    """Write what `train` and `translate` write for a run, and score it.

    Args:
        root: The folder of the experiment, with the texts.
        settings: The settings.
        run: The system, corpus and seed.
        errors: The share of words that are wrong in the translations.
    """
    rng = random.Random(str(run))
    corpus = settings.corpus(run.corpus)
    results = root / run.results_folder
    for test in corpus.files.tests:
        name = f"test.{test}.{corpus.target}"
        path = root / "data" / "split" / run.corpus / name
        references = path.read_text("utf-8").split("\n")[:-1]
        translations = []
        for line in references:
            words = [f"{WORD}wrong" if rng.random() < errors else word for word in line.split()]
            translations.append(" ".join(words))
        write_lines(results / "hypotheses" / name, translations)
    write_json(results / "training.json", _training(settings, run))
    write_json(results / "curves.json", curves_of(run))
    write_json(timing_file(root, run), timing_of(run))
    finish(root, settings, run)


def translate(root, settings, run, test, lines):
    """Replace a run's translation of a test set by lines, and score them."""
    target = settings.corpus(run.corpus).target
    write_lines(root / run.results_folder / "hypotheses" / f"test.{test}.{target}", lines)
    finish(root, settings, run)


def finish(root, settings, run):
    """Write the records of a run's translations, its attention maps and its scores."""
    write_translation(root, settings, run)
    if settings.system_settings(run.system).decode.attention:
        write_maps(root, settings, run)
    score_run(settings, *run, root)


def timing_file(root, run):
    """Return the path of the file with what was measured of a run's training."""
    return root / timings.training_cost_file(run, _fingerprint(run))


def write_translation(root, settings, run):
    """Write that the run's own model, with its own settings, made its translations."""
    folder = root / run.results_folder
    system = settings.system_settings(run.system)
    tests = settings.corpus(run.corpus).files.tests
    translation = {
        "model": _fingerprint(run),
        "averaged": {"settings": system.average.chosen, "updates": [20]},
        "decode": dataclasses.asdict(system.decode),
        "hypotheses": {
            path.name: sha256_of(path) for path in (folder / "hypotheses").glob("test.*")
        },
        "losses": {test: {"nats": 100.0, "tokens": 80} for test in tests},
    }
    write_json(folder / "translation.json", translation)


def write_maps(root, settings, run):
    """Write random attention of two layers and two heads for the first line of each test set."""
    corpus = settings.corpus(run.corpus)
    maps_by_test = {}
    for test in corpus.files.tests:
        name = f"test.{test}.{corpus.target}"
        path = root / run.results_folder / "hypotheses" / name
        target_tokens = [*path.read_text("utf-8").split("\n")[0].split(), "</s>"]
        source_tokens = [*(f"{WORD}{number}" for number in range(4)), "</s>"]
        previous_tokens = ["<s>", *target_tokens[:-1]]
        # The tokens that attend, and those that they attend to, in the order of ATTENTION_KINDS.
        tokens = (
            (target_tokens, source_tokens),
            (source_tokens, source_tokens),
            (target_tokens, previous_tokens),
        )
        draw = np.random.default_rng(len(run.system))
        maps = {}
        for kind, (rows, columns) in zip(ATTENTION_KINDS, tokens, strict=True):
            weights = _weights(draw, len(rows), len(columns))
            maps[kind] = AttentionMap(rows, columns, weights)
        maps_by_test[test] = [SentenceAttention(1, maps)]
    write_attention(root / run.results_folder / "hypotheses" / ATTENTION_FILE, maps_by_test)


def write_all(root, settings):
    """Write texts, and results of every run; later systems make fewer errors.

    Scoring takes seconds. What was written once is therefore written again without scoring, if the
    settings, the files that are there before and the number of samples are equal.
    """
    files_before = tuple(sorted(_contents(root).items()))
    samples = (significance.TRIALS, significance.RESAMPLES)
    key = (repr(settings), samples, files_before)
    if key not in _WRITTEN:
        _score_all(root, settings)
        _WRITTEN[key] = _contents(root)
    for name, content in _WRITTEN[key].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _contents(root):
    """Return the content of each file in a folder, by its path from there."""
    files = [path for path in root.rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def _score_all(root, settings):
    """Write what `write_all` writes, by scoring translations."""
    write_texts(root, settings)
    for number, system in enumerate(settings.trained_systems):
        for corpus in settings.corpora:
            for seed in settings.seeds:
                write_run(root, settings, Run(system, corpus, seed), 0.3 / (number + 1))


def write_lines(path, lines):
    """Write lines to a file, make its folder, and return the file's SHA-256."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return sha256_of(path)


def curves_of(run):
    """Make the curves of a training: five points, and two validations, the second one better."""
    start = 8.0 if run.system == "tiny" else 7.5
    names = ("update", "tokens", "loss", "learning_rate", "gradient_norm")
    points = [(100 * i, 160_000 * i, start - i, 0.001 / i, 1.0 + 1.0 / i) for i in range(1, 6)]
    training = [dict(zip(names, point, strict=True)) for point in points]
    validation = [
        {"update": 250, "loss": start - 5, "bleu": 20.0},
        {"update": 500, "loss": start - 6.75, "bleu": 30.0},
    ]
    return {"training": training, "validation": validation}


def timing_of(run):
    """Make what was measured of a run's training: an hour for `tiny`, a minute for others."""
    seconds = 3725.0 if run.system == "tiny" else 59.6
    return {
        "seconds": seconds,
        "device": "Test CPU",
        "processes": 1,
        "threads": 2,
        "devices": 1,
        "commit": "0123456789abcdef",
        "versions": "Python 3.11.0, torch 2.0.0",
        "tokens_per_second": 1234.5,
        "peak_memory": 1_500_000_000,
        "sustained_flops": 3e12,
        "flops_by_time": seconds * 3e12,
        "peak_flops": 4e12,
        "mfu": 0.415,
    }


def _weights(draw, rows, columns):
    """Draw attention weights of shape (layers, heads, rows, columns); each row sums to 1."""
    return draw.dirichlet([0.3] * columns, (2, 2, rows)).astype(np.float32)


def _sentences(seed, lines):
    """Draw sentences of 6 to 14 words, out of 60, which all begin with WORD."""
    rng = random.Random(seed)
    words = [WORD + "".join(rng.choices("abcdefgh", k=4)) for _ in range(60)]
    return [" ".join(rng.choices(words, k=rng.randint(6, 14))) + "." for _ in range(lines)]


def _filter_stats(stage, number):
    """Make the statistics of a data stage, which drops one pair; pairs depend on its position."""
    train = {
        "pairs_in": 10_000 - number,
        "pairs_out": 9_999 - number,
        "changed": {f"{stage}_edit": 7, "idle_edit": 0},
        "dropped": {f"{stage}_rule": 1, "idle_rule": 0},
        "samples": {f"{stage}_rule": [{"pair": 1, "source": f"{WORD}s", "target": f"{WORD}t"}]},
    }
    dropped = {"idle_rule": 0}
    quiet = {"pairs_in": 40, "pairs_out": 40, "changed": {}, "dropped": dropped, "samples": {}}
    return {
        "stage": stage,
        "corpus": "x",
        "settings": "0",
        "sets": {"train": train, "test.first": quiet},
    }


def _statistics(corpus):
    """Make the statistics of a corpus, which are the same for all sets and both languages."""
    side = {
        "sentences": 30,
        "words": 90,
        "unsplit": 70,
        "tokens": 120,
        "unk": 3,
        "max_tokens": 17,
    }
    languages = (corpus.source, corpus.target)
    names = ["train", *(f"test.{test}" for test in corpus.files.tests)]
    return {
        "joint": True,
        "sets": {name: dict.fromkeys(languages, side) for name in names},
        "vocabularies": {key: {"size": 96, "below_10": 8} for key in languages},
    }


def _fingerprint(run):
    """Return the fingerprint of a run's training, which differs from all others."""
    return hashlib.sha256(str(run).encode()).hexdigest()


def _training(settings, run):
    """Make what `train` records of a run."""
    system = settings.system_settings(run.system)
    is_tiny = run.system == "tiny"
    return {
        "parameters": 1_000_000 if is_tiny else 4_000_000,
        "flops": 4.2e12 if is_tiny else 9.9e13,
        "source_tokens": 700_000 + run.seed,
        "target_tokens": 800_000 + run.seed,
        "updates": 500,
        "skipped": 0,
        "code": "c0" * 32,
        "data": "b1" * 32,
        "valid_loss": curves_of(run)["validation"][-1]["loss"],
        "fingerprint": _fingerprint(run),
        "settings": training_settings_sha256(system, run.seed),
    }


def _corpus(name, tests):
    """Make the entry of a corpus in params.yaml, whose name ends in its languages."""
    source, target = name.split("-")[-2:]
    sides = {"source": {"path": "inputs/a"}, "target": {"path": "inputs/b"}}
    text = {"all": {"license_and_citation": "own", **sides}}
    sets = {"train": text, "valid": {}, "tests": dict.fromkeys(tests, text)}
    return corpus_entry(source, target, sets)


def _system(attention):
    """Make the entry of a system in params.yaml, with this setting `decode.attention`."""
    system = dataclasses.replace(
        systems.SYSTEM,
        train=systems.train(max_updates=10),
        average=Average(last=1),
        decode=systems.decode(attention=attention),
    )
    return systems.as_yaml(system)  # type: ignore[no-any-return]
