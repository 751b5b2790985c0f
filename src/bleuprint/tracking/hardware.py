"""Describe the machine of a training, and look up the published FLOP/s of devices.

`describe_machine` is what a training records about its machine. `paper_flops` and `peak_flops` are
the rates by which stopwatch.py computes costs.
"""

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

# The sustained single-precision FLOP/s of one device with which Vaswani et al. (2017, section 6.1,
# footnote 5) compute the cost of training runs.
_PAPER_FLOPS = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}

# Dense peaks in TFLOP/s by NVIDIA's data sheets and, for GeForce, architecture white papers (GA102,
# Ada): float32, tf32, bfloat16 and float16 (accumulated in float32); empty where the chip has no
# such units. Where a sheet gives tensor cores "with sparsity" only, this is half of it. "H100 HBM3"
# is the name that the SXM module reports.
_PEAKS_FILE = Path(__file__).with_name("gpu_peaks.csv")
_FLOPS_PER_TERAFLOPS = 1e12


def text_libraries(corpus: Corpus) -> list[str]:
    """Return the Python packages that split the text of a corpus into tokens and subwords.

    Args:
        corpus: The settings of the corpus.

    Returns:
        The names of the packages, so that their versions can be recorded.
    """
    libraries = []
    match corpus.tokenize.name:
        case "moses":
            libraries.append("sacremoses")
        case "spacy":
            libraries += ["spacy", "sacremoses"]
        case "segmenter":
            # A language without a segmenter is tokenized by sacremoses.
            libraries += segmenter_packages(_languages_of(corpus))
            libraries.append("sacremoses")
    if corpus.vocabulary.bpe:
        libraries.append("subword-nmt")
    if corpus.vocabulary.sentencepiece:
        libraries.append("sentencepiece")
    return libraries


def _languages_of(corpus: Corpus) -> list[str]:
    """Return the languages of a corpus, each language once.

    A corpus may have several language pairs, if one model is trained on several translation
    directions: en-de and en-fr give en, de, fr.
    """
    languages = list[str]()
    # The argument is the beginning of the pairs' names, which are not needed here.
    for pair in corpus.language_pairs("").values():
        languages += pair.languages
    # `dict.fromkeys` removes repetitions and keeps the order.
    return list(dict.fromkeys(languages))


def describe_machine(group: Group, libraries: Iterable[str] = ()) -> dict[str, Any]:
    """Describe the machine and the software of a training, to be recorded with its duration.

    Each process of a training uses one device: a GPU, or the CPU with some threads.

    Args:
        group: The processes of the training.
        libraries: The names of other packages whose versions are recorded, such as `sacremoses`.

    Returns:
        `device`: the name of the GPU or the CPU. If the processes use different GPUs, the text
        contains all names, such as `A100 + H100`; of CPUs, only the one of this process.
        `processes`: the number of processes.
        `threads`: the number of threads per process.
        `commit`: the Git commit of the code.
        `versions`: the versions of Python, torch and the other packages, as one text.
    """
    gpus: Sequence[str] = group.gpus
    if group.device.type == "cuda" and not gpus:
        # A training with one process does not collect the names of GPUs.
        gpus = [torch.cuda.get_device_name(group.device)]
    versions = [f"Python {platform.python_version()}", f"torch {torch.__version__}"]
    for library in libraries:
        versions.append(f"{library} {version(library)}")
    return {
        "device": " + ".join(gpus) or _cpu_name(),
        "processes": group.size,
        "threads": torch.get_num_threads(),
        "commit": code_commit(),
        "versions": ", ".join(versions),
    }


def peak_memory(device: torch.device) -> int:
    """Return the most memory that this process has used so far, in bytes.

    Args:
        device: The device of the training. For a GPU, its memory is measured; for a CPU, the
            resident memory of the process.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    # Linux reports kilobytes.
    peak_kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak_kilobytes * 1024


def paper_flops(device_name: str) -> float | None:
    """Return the sustained FLOP/s that Vaswani et al. (2017) assume for a GPU.

    The paper estimates the cost of a training as time x number of GPUs x these FLOP/s. It gives
    them for four GPUs only: K80, K40, M40 and P100.

    Args:
        device_name: The name of the device, such as `Tesla P100-PCIE-16GB`.

    Returns:
        The FLOP/s; None if the paper does not mention the device, or if the name consists of
        several names, joined by `+`.
    """
    gpu_models = "|".join(_PAPER_FLOPS)
    # The name begins with the model. `[^+]*` matches the rest of one name, but not `+` and a second
    # name.
    match = re.fullmatch(rf"({gpu_models})[^+]*", _short_name(device_name))
    if match is None:
        return None
    gpu_model = match[1]
    return _PAPER_FLOPS[gpu_model]


def peak_flops(device_name: str, precision: str) -> float | None:
    """Return the dense peak FLOP/s of a device by its data sheet; None if it is not known.

    Args:
        device_name: The name of the device. A part of a GPU (MIG) has another name than the GPU.
        precision: The name of a floating-point format, such as `bfloat16`. Chips without tf32
            compute in float32 instead.
    """
    # The size of the memory is not part of the names in the table.
    name = re.sub(r"[- ]\d+GB\b", "", _short_name(device_name))
    peaks = _read_peaks(name)
    peak_teraflops = peaks.get(precision)
    if precision == "tf32" and not peak_teraflops:
        peak_teraflops = peaks.get("float32")
    if not peak_teraflops:
        return None
    return float(peak_teraflops) * _FLOPS_PER_TERAFLOPS


def _read_peaks(device: str) -> dict[str, str]:
    """Return a GPU's row of the table of peak rates, which is a CSV file of this package.

    Args:
        device: The name of the GPU, such as `H100 HBM3`.

    Returns:
        The TFLOP/s as text, by precision, such as `{"bfloat16": "989.5"}`; an empty mapping if the
        table does not contain the GPU.
    """
    with _PEAKS_FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["device"] == device:
                return row
    return {}


def _short_name(device_name: str) -> str:
    """Return the name of a GPU without the names of its maker and its series."""
    return re.sub(r"^(NVIDIA |Tesla |GeForce )*", "", device_name)


def _cpu_name() -> str:
    """Return the name of the CPU that Linux reports, or `CPU` if Linux does not name it."""
    cpu_info = Path("/proc/cpuinfo").read_text("utf-8")
    match = re.search(r"(?m)^model name\s*:(.*)$", cpu_info)
    return match[1].strip() if match else "CPU"
