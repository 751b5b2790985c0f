"""The hardware of a training, and the published FLOP/s of devices."""

import csv
import platform
import re
import resource
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from bleuprint.config.corpus import Corpus
from bleuprint.runtime.code import code_commit
from bleuprint.runtime.distributed.group import Group
from bleuprint.text.segmenter import segmenter_packages

# The sustained single-precision FLOP/s of one device by which Vaswani et al. (2017, section 6.1,
# footnote 5) compute the cost of their own and others' trainings.
_PAPER = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}

# Dense peaks in TFLOP/s by NVIDIA's data sheets and, for GeForce, architecture white papers (GA102,
# Ada): float32, tf32, bfloat16 and float16 (accumulated in float32); empty where the chip has no
# such units. Where a sheet gives tensor cores "with sparsity" only, this is half of it. "H100 HBM3"
# is the name that the SXM module reports.
_PEAKS = Path(__file__).with_name("gpu_peaks.csv")


def text_libraries(corpus: Corpus) -> list[str]:
    """The packages that make a corpus's tokens and subwords."""
    languages = dict.fromkeys(
        x for pair in corpus.language_pairs("").values() for x in pair.languages
    )
    segmenters = segmenter_packages(languages)
    tokenizers = {"moses": [], "spacy": ["spacy"], "segmenter": segmenters}
    name, vocabulary = corpus.tokenize.name, corpus.vocabulary
    needed = [*tokenizers[name], "sacremoses"] if name in tokenizers else []
    needed += ["subword-nmt"] if vocabulary.bpe else []
    return [*needed, *(["sentencepiece"] if vocabulary.sentencepiece else [])]


def describe_machine(group: Group, libraries: Iterable[str] = ()) -> dict[str, Any]:
    """The device, the processes, the threads of each, the commit of the code, and versions.

    The versions are those of Python, torch and the installed `libraries`. A device is a GPU, or a
    process with its threads on a CPU: there are as many devices as processes. Unlike GPUs are all
    named, so that no cost is computed; CPUs are assumed to be like this one's.
    """
    gpus: Sequence[str] = group.gpus
    if group.device.type == "cuda":
        gpus = gpus or [torch.cuda.get_device_name(group.device)]
    versions = {"Python": platform.python_version(), "torch": torch.__version__}
    versions |= {name: version(name) for name in libraries}
    return {
        "device": " + ".join(gpus) or _processor(),
        "processes": group.size,
        "threads": torch.get_num_threads(),
        "commit": code_commit(),
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
    }


def peak_memory(device: torch.device) -> int:
    """The peak memory of this process in bytes: on the GPU, or resident on the CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # of kilobytes, on Linux


def paper_flops(device_name: str) -> float | None:
    """The sustained FLOP/s that the paper assumes for a device; None for others and unlike ones."""
    name = re.fullmatch(rf"({'|'.join(_PAPER)})[^+]*", _short(device_name))
    return _PAPER[name[1]] if name else None


def peak_flops(device_name: str, precision: str) -> float | None:
    """The dense peak in FLOP/s of a known device, by its data sheet; otherwise None.

    A part of a GPU (MIG) is another device. Chips without tf32 compute in float32 instead.
    """
    name = re.sub(r"[- ]\d+GB\b", "", _short(device_name))
    with _PEAKS.open(encoding="utf-8", newline="") as file:
        peaks = next((row for row in csv.DictReader(file) if row["device"] == name), {})
    peak = peaks.get(precision) or (peaks.get("float32") if precision == "tf32" else None)
    return float(peak) * 1e12 if peak else None


def _short(device_name: str) -> str:
    """A GPU's name without its maker's and the series'."""
    return re.sub(r"^(NVIDIA |Tesla |GeForce )*", "", device_name)


def _processor() -> str:
    """The processor's name as in /proc/cpuinfo."""
    found = re.search(r"(?m)^model name\s*:(.*)$", Path("/proc/cpuinfo").read_text("utf-8"))
    return found[1].strip() if found else "CPU"
