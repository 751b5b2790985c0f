"""What bleuprint reaches on one GPU, in parts that each end within three minutes (--seconds).

    python benchmarks/gpu.py tests
    python benchmarks/gpu.py train
    BLEUPRINT_MIRROR=/folder python benchmarks/gpu.py multi30k --seconds 480
    python benchmarks/gpu.py decode

- tests: those marked `gpu`, which compare the device with the CPU
- train: target tokens a second and MFU; gpu_training.py lists the figures (--figures)
- multi30k: recipe multi30k, English to German, to its end (or --max-updates), and its scores
- decode: output tokens a second beside CTranslate2, as in gpu_decoding.py

Each figure is written to gpu-PART.json in benchmarks/measured (--out) as it comes, with the device,
its driver, versions and the commit; an error stands in its figure's place, and a part that is cut
leaves what it had. What multi30k prepared and trained stays in --scratch: called again, it goes on
there. --device cpu runs the same without a GPU, for which all should be small: --sizes tiny
--updates 1 --max-tokens 500, --max-updates 20, --sentences 8.

The machine needs no internet, and neither DVC, Snakemake nor MLflow: torch (2.11 or newer), numpy,
pandas, psutil, regex, requests, rich, filelock, sacrebleu, safetensors, scipy, sentencepiece, tqdm,
click, joblib, pytest and hypothesis, and these wheels, 8 MB and CTranslate2's 43, for its Python:

    pip download --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \\
      --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 -d wheels \\
      -c constraints.txt annotated-types pydantic pydantic-core typing-inspection \\
      typing-extensions ruamel.yaml sacremoses subword-nmt py3langid ctranslate2
    pip install --no-index --no-deps --target /tmp/site wheels/*.whl
    export PYTHONPATH=$PWD/src:/tmp/site

CTranslate2's are built for CUDA 12 and say so where libcublas.so.12 is missing. For multi30k, the
folder BLEUPRINT_MIRROR needs the English and German files that corpora/multi30k-tokens.yaml names,
4 MB, as raw.githubusercontent.com/multi30k/dataset/COMMIT/data/task1/tok/NAME.
"""

import argparse
import gc
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any, TypeAlias

import torch

import gpu_decoding
import gpu_training
from bleuprint.config.paths import Run
from bleuprint.runtime.code import code_commit
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.files import read_json, write_json
from bleuprint.runtime.reexec import reexec
from bleuprint.scoring import bleu_variants
from bleuprint.tracking.hardware import describe_machine
from toolkits import ROOT, environment_with_source, prepare, read_recipe, run_stage

Figures: TypeAlias = Iterator[tuple[list[str], Callable[[], Any]]]  # names, and measurements

RUN = Run("transformer-tiny", "multi30k-en-de", 1)
PUBLISHED = 41.02  # BLEU on lower-cased tokens of flickr2016, Wu et al. 2021


def main() -> None:
    given = arguments()
    if given.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no GPU: --device cpu runs the same on the CPU")
    if given.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    given.path.parent.mkdir(parents=True, exist_ok=True)
    if not given.inside:
        write_json(given.path, {})
        sys.exit(bounded(given))
    reexec()
    if failed := measure(given):
        sys.exit(f"failed: {', '.join(failed)}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--seconds", type=int, default=180, help="the part is ended after these")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "measured")
    parser.add_argument("--scratch", type=Path, default=ROOT / "work" / "gpu")
    parser.add_argument(
        "--commit", default=code_commit(), help="of the code, if this is no checkout"
    )
    parser.add_argument("--figures", nargs="+", choices=gpu_training.FIGURES, help="of train")
    parser.add_argument("--sizes", nargs="+", choices=gpu_training.SIZES)
    parser.add_argument("--updates", type=int, default=20, help="updates to time, and to warm up")
    parser.add_argument("--max-tokens", type=int, default=25_000, help="of the batches of train")
    parser.add_argument("--max-updates", type=int, help="of multi30k; those of the recipe")
    parser.add_argument("--sentences", type=int, default=1000, help="to translate in decode")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.path = given.out.resolve() / f"gpu-{given.part}.json"
    given.scratch = given.scratch.resolve()
    return given


def bounded(given: argparse.Namespace) -> int:
    """Run the part in a process group of its own, which is ended in time; its exit status."""
    process = subprocess.Popen([sys.executable, *sys.argv, "--inside"], process_group=0)
    try:
        return process.wait(given.seconds)
    except subprocess.TimeoutExpired:
        write_json(given.path, {**read_json(given.path), "cut_after_seconds": given.seconds})
        print(f"{given.path}: cut after {given.seconds} s", file=sys.stderr)
        return 1
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def measure(given: argparse.Namespace) -> list[str]:
    """Write each figure as it comes; the names of those that failed."""
    began, failed = time.monotonic(), []
    figures: dict[str, Any] = {}
    facts = machine(given)
    for names, figure in PARTS[given.part](given):
        reset(given)
        try:
            value = figure()
        except Exception as error:  # of any kind: the others are measured
            traceback.print_exc()
            value = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        if isinstance(value, dict) and "tokens_per_second" in value and given.device == "cuda":
            value["memory_gb"] = round(torch.cuda.max_memory_reserved() / 1e9, 1)
        if value == "FAILED" or (isinstance(value, dict) and "error" in value):
            failed.append(" ".join(names))
        place = figures
        for name in names[:-1]:
            place = place.setdefault(name, {})
        place[names[-1]] = value
        seconds = round(time.monotonic() - began)
        write_json(given.path, {**facts, "seconds": seconds, "figures": figures})
        print(f"{seconds} s, {' '.join(names)}: {value}", flush=True)
    return failed


def reset(given: argparse.Namespace) -> None:
    """Forget what was compiled, whose number torch limits, and the memory of the figure before."""
    torch.compiler.reset()
    gc.collect()  # graphs and compiled layers are in cycles
    if given.device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def machine(given: argparse.Namespace) -> dict[str, Any]:
    """The device, its driver, versions, the commit and how the part was called."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    on_gpu = given.device == "cuda" and which(query[0])
    driver = subprocess.run(query, capture_output=True, text=True).stdout if on_gpu else ""
    return {
        **describe_machine(Group(0, 1, torch.device(given.device))),
        "commit": given.commit,
        "driver": driver.strip() or None,
        "cuda": torch.version.cuda,
        "called": " ".join(sys.argv[1:]).removesuffix(" --inside"),
    }


def run_tests(given: argparse.Namespace) -> Figures:
    """The outcome of each test marked gpu."""
    files = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"), reverse=True)  # kernels first
        if "mark.gpu" in path.read_text(encoding="utf-8")
    ]
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-v", "-p", "no:cacheprovider", *files]
    variables = {**environment_with_source(), "BLEUPRINT_TEST_DEVICE": given.device}
    with subprocess.Popen(
        command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            if found := re.match(r"tests/\S+::(\S+) (PASSED|FAILED|ERROR|SKIPPED)", line):
                yield [found[1]], partial(str, found[2])


def multi30k(given: argparse.Namespace) -> Figures:
    """The stages' seconds, validation losses and scores."""
    recipe = read_recipe("multi30k")
    recipe["corpora"] = {RUN.corpus: recipe["corpora"][RUN.corpus]}
    if given.max_updates:
        train = recipe["systems"][RUN.system]["train"]
        train |= {"max_updates": given.max_updates, "validate_interval": given.max_updates}
        train["save_interval"] = max(1, given.max_updates // 10)
    given.scratch.mkdir(parents=True, exist_ok=True)
    yield ["prepare"], partial(seconds, prepare, given.scratch, recipe, RUN.corpus)
    command = [sys.executable, str(ROOT / "stages" / "train.py"), *map(str, RUN)]
    variables, cwd = environment_with_source(), given.scratch
    with subprocess.Popen(
        command, cwd=cwd, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            if found := re.search(r"update (\d+): validation loss ([\d.]+)", line):
                yield ["validation loss", found[1]], partial(float, found[2])
    yield ["training"], partial(timing, given.scratch, process.returncode)
    if process.returncode:
        return
    for stage in ("average", "translate", "score"):
        yield [stage], partial(seconds, run_stage, given.scratch, stage, *RUN)
    yield ["published", "bleu"], lambda: PUBLISHED
    if (scores := given.scratch / RUN.results_folder / "scores.json").exists():
        for test, scored in read_json(scores).items():
            yield [test], partial(bleu, scored)


def seconds(function: Callable[..., object], *arguments: object) -> dict[str, float]:
    began = time.monotonic()
    function(*arguments)
    return {"seconds": round(time.monotonic() - began, 1)}


def timing(project: Path, status: int) -> dict[str, Any]:
    """Of the training that has just ended."""
    if status:
        raise RuntimeError(f"stages/train.py ended with status {status}")
    files = (project / RUN.timings_folder).glob("train-*.json")
    found: dict[str, Any] = read_json(max(files, key=lambda path: path.stat().st_mtime))
    return found


def bleu(scored: dict[str, Any]) -> dict[str, float]:
    """BLEU by sacreBLEU's default and by all variants."""
    measured = {each["metric"]: each["value"] for each in scored["metrics"] if not each["group"]}
    return {
        "sacrebleu": measured["bleu"],
        **{name: measured[name] for name in bleu_variants.VARIANTS},
    }


PARTS: dict[str, Callable[[argparse.Namespace], Figures]] = {
    "tests": run_tests,
    "train": gpu_training.figures,
    "multi30k": multi30k,
    "decode": lambda given: gpu_decoding.figures(given, RUN),
}

if __name__ == "__main__":
    main()
