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
    ("cpuinfo", "is_intel", "has_bfloat16"),
    [
        pytest.param(XEON, True, True, id="Xeon"),
        pytest.param(XEON.replace("avx512_bf16 ", ""), True, True, id="Xeon with AMX alone"),
        pytest.param(
            XEON.replace("amx_bf16 amx_tile ", ""), True, True, id="Xeon with AVX-512 alone"
        ),
        pytest.param(EPYC, False, False, id="EPYC"),
        pytest.param(GRAVITON, False, False, id="Graviton"),
    ],
)
def test_vendor_and_bfloat16_are_read_from_cpuinfo(tmp_path, cpuinfo, is_intel, has_bfloat16):
    """XEON, EPYC and GRAVITON are /proc/cpuinfo of processors of Intel, AMD and Arm.

    A Xeon multiplies in bfloat16 by AVX-512 (flag avx512_bf16) and by AMX (amx_bf16, amx_tile).
    """
    (tmp_path / "cpuinfo").write_text(cpuinfo)

    read = processor.read_processor(tmp_path / "cpuinfo")

    assert read.is_intel == is_intel
    assert read.has_bfloat16 == has_bfloat16
    assert read.cores == len(os.sched_getaffinity(0))


def test_without_cpuinfo_vendor_and_flags_are_empty(tmp_path):
    """On macOS, for example, there is no /proc/cpuinfo."""
    read = processor.read_processor(tmp_path / "missing")

    assert read.vendor == ""
    assert read.flags == frozenset()


@needs_programs("lscpu")
def test_vendor_and_flags_of_this_machine_are_those_of_lscpu():
    """The command lscpu of Linux, which reads the same file, is an independent reference."""
    process = subprocess.run(["lscpu", "--json"], capture_output=True, check=True)
    data_by_field = {}
    for entry in json.loads(process.stdout)["lscpu"]:
        data_by_field[entry["field"]] = entry["data"]
    # On Arm, /proc/cpuinfo has no field of this name.
    flags = data_by_field.get("Flags:", "") if processor.THIS.is_x86 else ""

    assert processor.THIS.vendor == data_by_field.get("Vendor ID:", "")
    assert processor.THIS.flags == frozenset(flags.split())


@pytest.mark.parametrize(
    "this_processor", [AMD, INTEL, OLD_AMD, OLD_INTEL], ids=["AMD", "Intel", "old AMD", "old Intel"]
)
def test_text_is_prepared_by_as_many_processes_as_there_are_cores(monkeypatch, this_processor):
    """Unless the variable BLEUPRINT_WORKERS sets another number."""
    monkeypatch.setattr(processor, "THIS", this_processor)
    monkeypatch.delenv("BLEUPRINT_WORKERS", raising=False)

    assert environment.worker_count() == this_processor.cores


@pytest.mark.parametrize(
    ("architecture", "is_x86"), [("x86_64", True), ("amd64", True), ("aarch64", False)]
)
def test_x86_64_and_amd64_are_names_of_the_x86_architecture(architecture, is_x86):
    assert replace(processor.THIS, architecture=architecture).is_x86 == is_x86


@pytest.mark.parametrize(
    ("flags", "has_bfloat16"),
    [
        pytest.param({"avx2"}, False, id="AVX2"),
        pytest.param({"avx512_bf16"}, True, id="AVX-512 BF16"),
        pytest.param({"amx_tile", "avx2"}, True, id="AMX"),
        pytest.param({"amx_bf16"}, True, id="AMX BF16"),
        pytest.param({"avx512_vnni", "avx2"}, False, id="AVX-512 VNNI"),
    ],
)
def test_avx512_bf16_or_amx_is_needed_to_multiply_in_bfloat16(flags, has_bfloat16):
    """The flags are those of /proc/cpuinfo; avx512_vnni multiplies 8-bit integers only."""
    with_flags = replace(processor.THIS, flags=frozenset(flags))
    assert with_flags.has_bfloat16 == has_bfloat16
