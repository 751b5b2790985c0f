r"""Measures bleuprint on one GPU, in parts that each end within three minutes (--seconds).

    python benchmarks/gpu.py tests
    python benchmarks/gpu.py train
    BLEUPRINT_MIRROR=/folder python benchmarks/gpu.py multi30k --seconds 480
    python benchmarks/gpu.py decode

- tests: the tests marked `gpu`, which compare the device with the CPU
- train: target tokens per second and MFU; gpu_training.py lists the figures (--figures)
- multi30k: recipe multi30k, English to German, to its end (or --max-updates), and its scores
- decode: output tokens per second beside CTranslate2, as in gpu_decoding.py

Each figure is written to gpu-PART.json in benchmarks/measured (--out) as soon as it is measured,
with the device, its driver, versions and the commit. A figure that fails is replaced by its error,
and a part that runs out of time keeps the figures it has. What multi30k prepared and trained stays
in --scratch: called again, it continues there. --device cpu runs the same without a GPU; use small
sizes then: --sizes tiny --updates 1 --max-tokens 500, --max-updates 20, --sentences 8.

The machine needs no internet, and neither DVC, Snakemake nor MLflow: torch (2.11 or newer), numpy,
pandas, psutil, regex, requests, rich, filelock, sacrebleu, safetensors, scipy, sentencepiece, tqdm,
click, joblib, pytest and hypothesis, and these wheels, 8 MB and CTranslate2's 43, for its Python:

    pip download --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
      --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 -d wheels \
      -c constraints.txt annotated-types pydantic pydantic-core typing-inspection \
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
from bleuprint.runtime.json_files import read_json, write_json
from bleuprint.runtime.reexec import reexec
from bleuprint.scoring import bleu_variants
from bleuprint.tracking.hardware import describe_machine
from toolkits import ROOT, environment_with_source, prepare, read_recipe, run_stage

# The names under which a figure is written, from the outermost, and what measures it.
Figures: TypeAlias = Iterator[tuple[list[str], Callable[[], Any]]]

RUN = Run("transformer-tiny", "multi30k-en-de", 1)
PUBLISHED_BLEU = 41.02  # on lower-cased tokens of flickr2016, Wu et al. 2021
FAILED = "FAILED"


def main() -> None:
    """Measure a part of the benchmark in a process of its own, and exit with its status.

    This process only starts the other one (option --inside) and ends it at the time limit.
    """
    arguments = read_arguments()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no GPU: --device cpu runs the same on the CPU")
    if arguments.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    arguments.path.parent.mkdir(parents=True, exist_ok=True)
    if not arguments.inside:
        write_json(arguments.path, {})
        sys.exit(run_with_time_limit(arguments))
    reexec()
    failed = measure_figures(arguments)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def read_arguments() -> argparse.Namespace:
    """Return the command line's arguments, with `path`, the file of the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("part", choices=PARTS)
    add("--seconds", type=int, default=180, help="the part is ended after these")
    add("--device", choices=("cuda", "cpu"), default="cuda")
    add("--out", type=Path, default=ROOT / "benchmarks" / "measured")
    add("--scratch", type=Path, default=ROOT / "work" / "gpu")
    add("--commit", default=code_commit(), help="commit of the code, where Git cannot tell it")
    add("--figures", nargs="+", choices=gpu_training.FIGURES, help="of train")
    add("--sizes", nargs="+", choices=gpu_training.SIZES)
    add("--updates", type=int, default=20, help="updates to time, and to warm up")
    add("--max-tokens", type=int, default=25_000, help="of the batches of train")
    add("--max-updates", type=int, help="for multi30k; default: the recipe's")
    add("--sentences", type=int, default=1000, help="to translate in decode")
    add("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.path = arguments.out.resolve() / f"gpu-{arguments.part}.json"
    arguments.scratch = arguments.scratch.resolve()
    return arguments


def run_with_time_limit(arguments: argparse.Namespace) -> int:
    """Run the part in a process group that is killed at its time limit; return its exit status.

    Args:
        arguments: The arguments of the command line; `seconds` is the limit.
    """
    command = [sys.executable, *sys.argv, "--inside"]
    process = subprocess.Popen(command, process_group=0)
    try:
        return process.wait(arguments.seconds)
    except subprocess.TimeoutExpired:
        report = read_json(arguments.path)
        write_json(arguments.path, {**report, "cut_after_seconds": arguments.seconds})
        print(f"{arguments.path}: cut after {arguments.seconds} s", file=sys.stderr)
        return 1
    finally:
        with suppress(ProcessLookupError):  # it has ended with all its children
            os.killpg(process.pid, signal.SIGKILL)


def measure_figures(arguments: argparse.Namespace) -> list[str]:
    """Measure the figures of a part, and write them to a file after each one.

    So a part that is ended at its time limit leaves the figures that it has measured. A figure that
    fails is recorded with its error, and the next one is measured.

    Args:
        arguments: The arguments of the command line.

    Returns:
        The names of the figures that failed.
    """
    start = time.monotonic()
    failed = []
    figures: dict[str, Any] = {}
    facts = machine_facts(arguments)
    for names, measure in PARTS[arguments.part](arguments):
        free_memory(arguments)
        try:
            figure = measure()
        except Exception as error:  # whatever it is, the other figures are measured
            traceback.print_exc()
            first_line = f"{type(error).__name__}: {error}".splitlines()[0]
            figure = {"error": first_line}
        is_speed = isinstance(figure, dict) and "tokens_per_second" in figure
        if is_speed and arguments.device == "cuda":
            figure["memory_gb"] = round(torch.cuda.max_memory_reserved() / 1e9, 1)
        has_error = isinstance(figure, dict) and "error" in figure
        if figure == FAILED or has_error:
            failed.append(" ".join(names))
        put(figures, names, figure)
        seconds = round(time.monotonic() - start)
        write_json(arguments.path, {**facts, "seconds": seconds, "figures": figures})
        print(f"{seconds} s, {' '.join(names)}: {figure}", flush=True)
    return failed


def put(figures: dict[str, Any], names: list[str], figure: object) -> None:
    """Put a figure into nested dictionaries: names ["base", "eager"] as figures["base"]["eager"].

    Inner dictionaries that do not exist yet are created.

    Args:
        figures: The dictionary to change.
        names: The keys from the outermost to the innermost dictionary.
        figure: The value.
    """
    *outer_names, last_name = names
    inner = figures
    for name in outer_names:
        inner = inner.setdefault(name, {})
    inner[last_name] = figure


def free_memory(arguments: argparse.Namespace) -> None:
    """Free the memory and the compiled code of the previous figure.

    torch compiles only a limited number of variants, so the old ones have to be forgotten.

    Args:
        arguments: The arguments of the command line; `device` says whose memory.
    """
    torch.compiler.reset()
    gc.collect()  # CUDA graphs and compiled layers refer to each other
    if arguments.device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def machine_facts(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the device, its driver, versions, the commit and how the part was called.

    Args:
        arguments: The arguments of the command line.
    """
    driver = None
    if arguments.device == "cuda" and which("nvidia-smi"):
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(query, capture_output=True, text=True).stdout.strip() or None
    return {
        **describe_machine(Group(0, 1, torch.device(arguments.device))),
        "commit": arguments.commit,
        "driver": driver,
        "cuda": torch.version.cuda,
        "called": " ".join(sys.argv[1:]).removesuffix(" --inside"),
    }


def run_tests(arguments: argparse.Namespace) -> Figures:
    """Run the tests marked gpu, and yield the name and the outcome of each as pytest prints it.

    An outcome is yielded as a list of one name and a function that returns `PASSED`, for example.

    Args:
        arguments: The arguments of the command line.
    """
    test_files = []
    # In reverse order, tests of kernels come first. They matter most if the time is over early.
    for path in sorted((ROOT / "tests").rglob("test_*.py"), reverse=True):
        if "mark.gpu" in path.read_text(encoding="utf-8"):
            test_files.append(str(path.relative_to(ROOT)))
    options = ["-m", "gpu", "-v", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *test_files]
    variables = {**environment_with_source(), "BLEUPRINT_TEST_DEVICE": arguments.device}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            match = re.match(r"tests/\S+::(\S+) (PASSED|FAILED|ERROR|SKIPPED)", line)
            if match:
                test_name, outcome = match.groups()
                yield [test_name], partial(str, outcome)


def run_multi30k(arguments: argparse.Namespace) -> Figures:
    """Run the recipe multi30k, and yield its figures as they come.

    These are the seconds of the stages, the validation losses, the speed of the training, and BLEU
    beside the published one. Each figure is yielded as its names and a function that returns it.

    Args:
        arguments: The arguments of the command line.
    """
    recipe = read_recipe("multi30k")
    recipe["corpora"] = {RUN.corpus: recipe["corpora"][RUN.corpus]}
    if arguments.max_updates:
        recipe["systems"][RUN.system]["train"] |= {
            "max_updates": arguments.max_updates,
            "validate_interval": arguments.max_updates,
            "save_interval": max(1, arguments.max_updates // 10),
        }
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    yield ["prepare"], partial(measure_seconds, prepare, arguments.scratch, recipe, RUN.corpus)
    command = [sys.executable, str(ROOT / "stages" / "train.py"), *map(str, RUN)]
    with subprocess.Popen(
        command,
        cwd=arguments.scratch,
        env=environment_with_source(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            match = re.search(r"update (\d+): validation loss ([\d.]+)", line)
            if match:
                update, loss = match.groups()
                yield ["validation loss", update], partial(float, loss)
    yield ["training"], partial(training_timing, arguments.scratch, process.returncode)
    if process.returncode:
        return
    for stage in ("average", "translate", "score"):
        yield [stage], partial(measure_seconds, run_stage, arguments.scratch, stage, *RUN)
    yield ["published", "bleu"], lambda: PUBLISHED_BLEU
    scores_path = arguments.scratch / RUN.results_folder / "scores.json"
    if scores_path.exists():
        for test_set, scores in read_json(scores_path).items():
            yield [test_set], partial(bleu_of_test_set, scores)


def measure_seconds(function: Callable[..., object], *arguments: object) -> dict[str, float]:
    """Call a function, and return the seconds it took.

    Args:
        function: The function.
        arguments: The arguments of the function.
    """
    start = time.monotonic()
    function(*arguments)
    return {"seconds": round(time.monotonic() - start, 1)}


def training_timing(project: Path, exit_status: int) -> dict[str, Any]:
    """Return what the training that has just ended recorded of its speed.

    Args:
        project: The scratch folder.
        exit_status: The exit status of the training.

    Raises:
        RuntimeError: The training failed.
    """
    if exit_status:
        raise RuntimeError(f"stages/train.py ended with status {exit_status}")
    files = (project / RUN.timings_folder).glob("train-*.json")
    newest = max(files, key=lambda path: path.stat().st_mtime)
    timing: dict[str, Any] = read_json(newest)
    return timing


def bleu_of_test_set(scores: dict[str, Any]) -> dict[str, float]:
    """Return BLEU over all lines of a test set, by sacreBLEU's default and by all variants.

    Args:
        scores: The scores of the test set, as scores.json has them.
    """
    values = {}
    for entry in scores["metrics"]:
        if not entry["group"]:
            values[entry["metric"]] = entry["value"]
    bleu = {"sacrebleu": values["bleu"]}
    for variant in bleu_variants.VARIANTS:
        bleu[variant] = values[variant]
    return bleu


def run_decode(arguments: argparse.Namespace) -> Figures:
    """Yield the speed of beam search with each model.

    Args:
        arguments: The arguments of the command line.
    """
    return gpu_decoding.decode_figures(arguments, RUN)


PARTS: dict[str, Callable[[argparse.Namespace], Figures]] = {
    "tests": run_tests,
    "train": gpu_training.train_figures,
    "multi30k": run_multi30k,
    "decode": run_decode,
}

if __name__ == "__main__":
    main()
