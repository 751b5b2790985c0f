"""What bleuprint reaches on one GPU, in parts that each end within nine minutes.

    python benchmarks/gpu.py tests
    python benchmarks/gpu.py train
    BLEUPRINT_MIRROR=/folder python benchmarks/gpu.py multi30k

The machine needs this project's packages and no internet. Each part writes gpu-PART.json into
benchmarks/measured (--out), with the device, its driver, versions and the commit.

- tests: those marked `gpu` (tests/integration/test_gpu.py)
- train: target tokens a second and, where the device's peak is known, MFU of three sizes of model
  (--sizes), in float32, TF32 and bfloat16, in bfloat16 with compiled layers, and of
  benchmarks/annotated.py in float32. The batches are the phrasebook's, of at most --max-tokens
  padded tokens, in a vocabulary of 37,000. As many updates are timed as went before (--updates).
- multi30k: recipe multi30k, English to German, to its end (or --max-updates), its scores, and the
  speed of decoding flickr2016: ours, and CTranslate2 in float16

--device cpu runs the same without a GPU, for which sizes and updates should be small.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch

import annotated
from bleuprint.config.experiment import load
from bleuprint.config.paths import Cell, folder
from bleuprint.config.system import System
from bleuprint.dataset.batching import Position
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.decoding.beam_search import BATCH_TOKENS
from bleuprint.decoding.ctranslate2_convert import convert
from bleuprint.decoding.engine import TorchEngine
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import load_model
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.files import read_json
from bleuprint.runtime.reexec import reexec
from bleuprint.scoring import bleu_variants
from bleuprint.tracking.hardware import machine_of, peak_flops
from bleuprint.training.data_loader import local_updates, prefetch
from bleuprint.training.train_step import TrainStep
from toolkits import ROOT, SOURCE, Size, environment, prepare, read_recipe

Precision: TypeAlias = Literal["float32", "tf32", "bfloat16"]

VOCABULARY = 37_000
SIZES = {
    "tiny": Size(128, 256, 4, 4),
    "base": Size(512, 2048, 6, 8),
    "big": Size(1024, 4096, 6, 16),
}
# Precision, and whether layers are compiled.
VARIANTS: dict[str, tuple[Precision, bool]] = {
    "float32": ("float32", False),
    "TF32": ("tf32", False),
    "bfloat16": ("bfloat16", False),
    "bfloat16 compiled": ("bfloat16", True),
}
TEST, SYSTEM, CORPUS = "test.flickr2016", "transformer-tiny", "multi30k-en-de"
ROUNDS = 3


@dataclass(frozen=True)
class Measured:
    """Target tokens a second without padding; MFU only where operations and peak are known."""

    tokens_per_second: float
    mfu: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("tests", "train", "multi30k"))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "measured")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--updates", type=int, default=20, help="updates to time, and to warm up")
    parser.add_argument("--max-tokens", type=int, default=25_000)
    parser.add_argument("--max-updates", type=int, help="those of the recipe")
    given = parser.parse_args()
    reexec()
    if given.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no GPU: --device cpu runs the same on the CPU")
    if given.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    parts: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
        "tests": run_tests,
        "train": measure_training,
        "multi30k": measure_multi30k,
    }
    began = time.monotonic()
    measured = parts[given.part](given)
    facts = {**machine(given.device), "seconds": round(time.monotonic() - began), **measured}
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"gpu-{given.part}.json"
    path.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    print(f"{path} written after {facts['seconds']} s")


def machine(device: str) -> dict[str, Any]:
    """The device, its driver, versions, and the commit."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = (
        subprocess.run(query, capture_output=True, text=True).stdout if device == "cuda" else ""
    )
    found = machine_of(Group(0, 1, torch.device(device)))
    return {**found, "driver": driver.strip() or None, "cuda": torch.version.cuda}


def run_tests(given: argparse.Namespace) -> dict[str, Any]:
    """Run the tests marked gpu; exits if one fails."""
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-v", "tests/integration/test_gpu.py"]
    variables = {**environment(), "PYTHONPATH": SOURCE, "BLEUPRINT_TEST_DEVICE": given.device}
    done = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    lines = [line.split()[:2] for line in done.stdout.splitlines() if "::" in line]
    if done.returncode:
        sys.exit("tests failed")
    return {"tests": {name.rpartition("::")[2]: outcome for name, outcome in lines}}


def measure_training(given: argparse.Namespace) -> dict[str, Any]:
    """The speed of each variant and size; an error, such as too little memory, in its place."""
    device, found = torch.device(given.device), {}
    with tempfile.TemporaryDirectory() as scratch:
        project, name = Path(scratch), "phrasebook-en-de"
        prepare(project, read_recipe("phrasebook"), name)
        corpus = BinaryCorpus(project / folder(name, "binary"))
        for size in given.sizes:
            print(f"{size}:", flush=True)
            found[size] = dict(_variants(SIZES[size], corpus, device, given))
    return {"vocabulary": VOCABULARY, "max_tokens": given.max_tokens, "training": found}


def _variants(
    size: Size, corpus: BinaryCorpus, device: torch.device, given: argparse.Namespace
) -> Iterator[tuple[str, Any]]:
    contestants: dict[str, Callable[[], Measured]] = {
        name: partial(ours, size, precision, compiled, corpus, device, given)
        for name, (precision, compiled) in VARIANTS.items()
    }
    contestants["annotated style"] = partial(theirs, size, corpus, device, given)
    for name, measure in contestants.items():
        try:
            result = measure()
        except torch.OutOfMemoryError as error:
            yield name, {"error": str(error).splitlines()[0]}
            continue
        finally:
            if device.type == "cuda":
                torch.cuda.empty_cache()
        mfu = "" if result.mfu is None else f", MFU {result.mfu:.1%}"
        print(f"  {name}: {result.tokens_per_second:,.0f} target tokens/s{mfu}", flush=True)
        yield name, vars(result)


def ours(
    size: Size,
    precision: Precision,
    compiled: bool,
    corpus: BinaryCorpus,
    device: torch.device,
    given: argparse.Namespace,
) -> Measured:
    """Updates by TrainStep, with batches read ahead as in a training."""
    system = _system(size, precision, compiled, given)
    group = Group(0, 1, device)
    torch.manual_seed(1)
    model = Transformer(system.model, VOCABULARY, VOCABULARY).to(device).train()
    step = TrainStep(model, system.train, 1, group)
    tokens, flops, began = 0, 0, 0.0
    with closing(prefetch(local_updates(corpus, system, 1, Position(), group))) as updates:
        for number, local in enumerate(islice(updates, 2 * given.updates)):
            if number == given.updates:
                tokens, flops, began = 0, 0, annotated.now(device)
            stats = step.update(number + 1, local)
            tokens, flops = tokens + stats.target_tokens, flops + stats.flops
    seconds = annotated.now(device) - began
    peak = peak_flops(machine_of(group)["device"], precision)
    return Measured(tokens / seconds, peak and flops / seconds / peak)


def theirs(
    size: Size, corpus: BinaryCorpus, device: torch.device, given: argparse.Namespace
) -> Measured:
    """The Annotated Transformer's way, in float32."""
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(1)
    model = annotated.EncoderDecoder(size.layers, size.d_model, size.d_ff, size.heads, VOCABULARY)
    settings = argparse.Namespace(
        updates=given.updates, seed=1, batch_tokens=given.max_tokens, device=device
    )
    return Measured(annotated.train(model.to(device), corpus, settings))


def _system(size: Size, precision: Precision, compiled: bool, given: argparse.Namespace) -> System:
    """The phrasebook's system in another size, with the paper's dropout."""
    system = load(ROOT / "params.yaml").system("small")
    model = replace(
        system.model,
        encoder_layers=size.layers,
        decoder_layers=size.layers,
        d_model=size.d_model,
        d_ff=size.d_ff,
        heads=size.heads,
        d_k=size.d_model // size.heads,
        d_v=size.d_model // size.heads,
        dropout=replace(system.model.dropout, embedding=0.1, residual=0.1),
    )
    train = replace(
        system.train,
        tokens_per_update=given.max_tokens,
        max_tokens=given.max_tokens,
        precision=precision,
        compile=compiled,
    )
    return replace(system, model=model, train=train)


def measure_multi30k(given: argparse.Namespace) -> dict[str, Any]:
    """Train, average, translate and score by the stages' scripts; then time decoding."""
    recipe = read_recipe("multi30k")
    recipe["corpora"] = {CORPUS: recipe["corpora"][CORPUS]}
    if given.max_updates:
        train = recipe["systems"][SYSTEM]["train"]
        train |= {"max_updates": given.max_updates, "validate_every": given.max_updates}
        train["checkpoint_every"] = max(1, given.max_updates // 10)
    cell = Cell(SYSTEM, CORPUS, recipe["seeds"][0])
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch)
        prepare(project, recipe, CORPUS)
        for stage in ("train", "average", "translate", "score"):
            command = [sys.executable, str(ROOT / "stages" / f"{stage}.py"), *map(str, cell)]
            variables = {**environment(), "PYTHONPATH": SOURCE}
            subprocess.run(command, cwd=project, env=variables, check=True)
        scores = read_json(project / cell.results / "scores.json")
        (timing,) = (project / cell.timings).glob("train-*.json")
        return {
            "published": 41.02,  # BLEU on lower-cased tokens, Wu et al. 2021
            "bleu": {test: _bleu(scored) for test, scored in scores.items()},
            "training": read_json(timing),
            "decoding": _measure_decoding(project, cell, torch.device(given.device)),
        }


def _bleu(scored: dict[str, Any]) -> dict[str, float]:
    """BLEU by sacreBLEU's default and by all variants."""
    measured = {each["measure"]: each["value"] for each in scored["measures"] if not each["group"]}
    return {
        "sacrebleu": measured["bleu"],
        **{name: measured[name] for name in bleu_variants.VARIANTS},
    }


def _measure_decoding(project: Path, cell: Cell, device: torch.device) -> dict[str, Any]:
    """Sentences a second from token ids to token ids, the best of some rounds."""
    corpus = BinaryCorpus(project / folder(cell.corpus, "binary"))
    decode = load(project / "params.yaml").system_on(cell.system, cell.corpus).decode
    model = load_model(project / cell.models / "averaged", corpus).to(device)
    side = corpus.side(TEST, corpus.source)
    engine, translator = TorchEngine(model, decode), _ctranslate2(model, corpus, device)
    tokens = corpus.segmentation(corpus.source).vocabulary.tokens
    lines = [[tokens[i] for i in side[row][:-1].tolist()] for row in range(len(side))]

    def by_ctranslate2() -> None:
        translator.translate_batch(
            lines,
            beam_size=decode.beam,
            length_penalty=decode.length_penalty.alpha,
            max_decoding_length=int(side.lengths.max()) + decode.max_len_b,
            batch_type="tokens",
            max_batch_size=BATCH_TOKENS,
        )

    found = {}
    for name, translate in (
        ("bleuprint float32", lambda: engine.search(side, side.lengths)),
        (f"CTranslate2 {translator.compute_type}", by_ctranslate2),
    ):
        seconds = []
        for _ in range(1 + ROUNDS):
            began = annotated.now(device)
            translate()
            seconds.append(annotated.now(device) - began)
        found[name] = len(lines) / min(seconds[1:])
        print(f"{name}, beam {decode.beam}: {found[name]:,.0f} sentences/s", flush=True)
    return {"test": TEST, "beam": decode.beam, "sentences_per_second": found}


def _ctranslate2(model: Transformer, corpus: BinaryCorpus, device: torch.device) -> Any:
    """The model in CTranslate2: float16 on a GPU, float32 on the CPU."""
    import ctranslate2

    languages = corpus.source, corpus.target
    source, target = (corpus.segmentation(language).vocabulary for language in languages)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "model"
        convert(model, (source, target), path)
        number = "float16" if device.type == "cuda" else "float32"
        return ctranslate2.Translator(str(path), device=device.type, compute_type=number)


if __name__ == "__main__":
    main()
