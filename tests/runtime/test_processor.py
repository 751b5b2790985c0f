"""What /proc/cpuinfo says, and each choice that depends on it, for the processors of both vendors.

The texts are from the /proc/cpuinfo of such machines, with fewer flags.
"""

import json
import os
import subprocess
from dataclasses import replace

import pytest

from bleuprint.runtime import environment, processor
from processors import AMD, INTEL, OLD_AMD, OLD_INTEL
from requirements import needs_programs

XEON = """\
processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
flags\t\t: fpu sse2 avx2 avx512f avx512_bf16 avx512_vnni amx_bf16 amx_tile amx_int8
vmx flags\t: vnmi preemption_timer
bugs\t\t: spectre_v1

processor\t: 1
vendor_id\t: AuthenticAMD
flags\t\t: fpu
"""
EPYC = """\
processor\t: 0
vendor_id\t: AuthenticAMD
model name\t: AMD EPYC 7742 64-Core Processor
flags\t\t: fpu sse2 avx2 fma sha_ni
"""
GRAVITON = """\
processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd bf16 i8mm
CPU implementer\t: 0x41
"""


@pytest.mark.parametrize(
    ("text", "is_intel", "has_bfloat16"),
    [
        (XEON, True, True),
        (XEON.replace("avx512_bf16 ", ""), True, True),  # by AMX
        (XEON.replace("amx_bf16 amx_tile ", ""), True, True),  # by AVX-512
        (EPYC, False, False),
        (GRAVITON, False, False),
    ],
)
def test_a_processor_is_what_linux_says(tmp_path, text, is_intel, has_bfloat16):
    (tmp_path / "cpuinfo").write_text(text)
    found = processor.read_processor(tmp_path / "cpuinfo")
    assert (found.is_intel, found.has_bfloat16) == (is_intel, has_bfloat16)
    assert found.cores == len(os.sched_getaffinity(0))


def test_a_machine_that_says_nothing_is_of_no_vendor(tmp_path):
    found = processor.read_processor(tmp_path / "missing")
    assert (found.vendor, found.flags) == ("", frozenset())


@needs_programs("lscpu")
def test_this_machine_is_of_the_vendor_that_lscpu_finds():
    found = subprocess.run(["lscpu", "--json"], capture_output=True, check=True)
    fields = {each["field"]: each["data"] for each in json.loads(found.stdout)["lscpu"]}
    assert processor.THIS.vendor == fields.get("Vendor ID:", "")
    flags = fields.get("Flags:", "") if processor.THIS.is_x86 else ""  # Arm has other fields
    assert processor.THIS.flags == frozenset(flags.split())


@pytest.mark.parametrize("each", [AMD, INTEL, OLD_AMD, OLD_INTEL])
def test_text_is_prepared_by_as_many_processes_as_there_are_cores(monkeypatch, each):
    monkeypatch.setattr(processor, "THIS", each)
    monkeypatch.delenv("BLEUPRINT_WORKERS", raising=False)
    assert environment.worker_count() == each.cores


@pytest.mark.parametrize(
    ("architecture", "is_x86"), [("x86_64", True), ("amd64", True), ("aarch64", False)]
)
def test_which_architectures_are_x86(architecture, is_x86):
    assert replace(processor.THIS, architecture=architecture).is_x86 == is_x86


@pytest.mark.parametrize(
    ("flags", "has_bfloat16"),
    [
        ({"avx2"}, False),
        ({"avx512_bf16"}, True),
        ({"amx_tile", "avx2"}, True),
        ({"amx_bf16"}, True),
        ({"avx512_vnni", "avx2"}, False),
    ],
)
def test_which_processors_multiply_in_bfloat16(flags, has_bfloat16):
    found = replace(processor.THIS, flags=frozenset(flags))
    assert found.has_bfloat16 == has_bfloat16
