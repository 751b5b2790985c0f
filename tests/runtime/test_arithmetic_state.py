"""Portable arithmetic is what the libraries do, whatever the environment requests of them."""

import json
import os
import re
import subprocess
import sys

import pytest
import torch

from bleuprint.model.arithmetic import PORTABLE
from bleuprint.runtime import arithmetic_state
from bleuprint.runtime.arithmetic_state import LIBRARY_PREFIXES, PROBE_DIGESTS, library_variables
from bleuprint.runtime.reexec import VARIABLES
from requirements import needs_programs
from root import ROOT

PATHS = [str(ROOT / "src"), str(ROOT / "tests" / "support")]
RESTART = 'from bleuprint.model.arithmetic import restart\nrestart("micro", "toy")\n'
SHOW = RESTART + "import json, os\nprint(json.dumps(dict(os.environ)))\n"
TRAIN = RESTART + "import portable_updates\nportable_updates.main()\n"
CHECK = f"""{RESTART}
from bleuprint.model.arithmetic import check_portable
from bleuprint.runtime.errors import run_main
run_main(lambda: check_portable("micro"))
"""

# What was found to change the bytes of a training, or of its products, on one processor or another.
HARMFUL = {
    "MKL_NUM_THREADS": "2",
    "MKL_DOMAIN_NUM_THREADS": "MKL_DOMAIN_BLAS=2",
    "MKL_CBWR": "AVX2",
    "OMP_NUM_THREADS": "2",
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "DNNL_MAX_CPU_ISA": "SSE41",
    "ONEDNN_DEFAULT_FPMATH_MODE": "BF16",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA",
}
# The rest of what these libraries read.
OTHERS = {
    "OMP_DYNAMIC": "true",
    "OMP_PROC_BIND": "spread",
    "OMP_THREAD_LIMIT": "2",
    "GOMP_CPU_AFFINITY": "0",
    "KMP_AFFINITY": "granularity=fine,compact,1,0",
    "MKL_DYNAMIC": "FALSE",
    "MKL_DEBUG_CPU_TYPE": "5",
    "MKL_VERBOSE": "1",
    "MKL_THREADING_LAYER": "SEQUENTIAL",
    "DNNL_DEFAULT_FPMATH_MODE": "ANY",
    "ONEDNN_CPU_ISA_HINTS": "PREFER_YMM",
    "ONEDNN_VERBOSE": "1",
    "OPENBLAS_NUM_THREADS": "2",
    "OPENBLAS_CORETYPE": "Prescott",
    "BLIS_NUM_THREADS": "2",
    "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3",
    "LRU_CACHE_CAPACITY": "4",
    "TORCH_LINEAR_FLATTEN_3D": "1",
    "FBGEMM_ENABLE_INSTRUCTIONS": "AVX2",
}


def process(folder, script, **variables):
    """A Python process in a folder whose system `micro` on `toy` has portable arithmetic."""
    resolved = {"runs": {"micro": {"toy": {"arithmetic": "portable"}}}}
    (folder / "reports").mkdir(exist_ok=True)
    (folder / "reports/resolved.json").write_text(json.dumps(resolved))
    # as in a shell that sets no variable of these libraries; torch itself sets some in this process
    prefixes = (*LIBRARY_PREFIXES, "GLIBC", "TORCH", "PYTORCH")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    environment = {**clean, "PYTHONPATH": os.pathsep.join(PATHS), **variables}
    (folder / "script.py").write_text(script)
    command = [sys.executable, "script.py"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def result(folder, script, **variables):
    done = process(folder, script, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_restart_leaves_our_variables_of_these_libraries_and_all_of_others(tmp_path):
    kept = {"HOME": str(tmp_path), "TORCH_LOGS": "", "GOMP_SPINCOUNT": "7", "MALLOC_ARENA_MAX": "1"}
    found = result(tmp_path, SHOW, **kept, **OTHERS, **HARMFUL)
    assert kept.items() <= found.items()
    assert PORTABLE.items() <= found.items()
    assert library_variables(found) == library_variables({**PORTABLE, **VARIABLES})


def test_variables_of_these_libraries_change_no_byte(tmp_path):
    expected = result(tmp_path, TRAIN)
    assert result(tmp_path, TRAIN, **OTHERS, **HARMFUL) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), sorted({**OTHERS, **HARMFUL}.items()))
def test_no_variable_of_these_libraries_changes_a_byte(tmp_path, made_once, name, value):
    def make(folder):
        folder.mkdir()
        (folder / "expected.json").write_text(json.dumps(result(folder, TRAIN)))

    expected = json.loads((made_once("portable-bytes", make) / "expected.json").read_text())
    assert result(tmp_path, TRAIN, **{name: value}) == expected


STATES = """
import ctypes, json, os, torch
from bleuprint.runtime import arithmetic_state

def deviation(change, undo):
    exec(change)
    found = arithmetic_state.describe_deviation()
    exec(undo)
    return found

library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
sound = arithmetic_state.describe_deviation()
print(json.dumps([sound, *(deviation(*each) for each in CHANGES)]))
"""


def test_each_state_that_differs_is_found(tmp_path):
    changes = {
        "torch.set_num_threads(2)": "torch.set_num_threads(1)",
        "library.MKL_Set_Num_Threads_Local(2)": "library.MKL_Set_Num_Threads_Local(0)",
        "torch.set_default_dtype(torch.float64)": "torch.set_default_dtype(torch.float32)",
        "torch.set_float32_matmul_precision('medium')": (
            "torch.set_float32_matmul_precision('highest')"
        ),
        "torch.set_autocast_enabled('cpu', True)": "torch.set_autocast_enabled('cpu', False)",
        "torch.backends.mkldnn.set_flags(False)": "torch.backends.mkldnn.set_flags(True)",
        "torch.set_flush_denormal(True)": "torch.set_flush_denormal(False)",
    }
    script = RESTART + STATES.replace("CHANGES", repr([*changes.items()]))
    sound, *found = result(tmp_path, script)
    assert sound is None
    assert found == [
        "torch computes with 2 threads instead of 1",
        "MKL computes with 2 threads instead of 1",
        "torch's default type is torch.float64 instead of torch.float32",
        "torch's precision of float32 products is 'medium' instead of 'highest'",
        "torch computes in a type of its own choice (autocast)",
        "oneDNN is switched off",
        "numbers below 2^-126 are rounded to 0 (denormals)",
    ]


# A library with another pow() than that of glibc, which the learning rate is computed with.
POW = """
#include <math.h>
double pow(double base, double exponent) {
    return nextafter(exp(exponent * log(base)), 4.0);
}
"""


@needs_programs("gcc")
def test_a_preloaded_library_that_computes_otherwise_is_refused_in_one_line(tmp_path):
    (tmp_path / "pow.c").write_text(POW)
    library = tmp_path / "libpow.so"
    command = ["gcc", "-shared", "-fPIC", "-fno-builtin", "-o", library, "pow.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = process(tmp_path, CHECK, LD_PRELOAD=str(library))
    assert done.stderr == (
        "bleuprint: error: systems.micro.arithmetic portable: a test computation gives other bytes "
        f"than elsewhere: unset the variable that causes it, one of LD_PRELOAD={library}; "
        "or set native\n"
    )
    assert done.returncode == 1
    assert process(tmp_path, CHECK).returncode == 0


def test_a_module_that_sets_a_variable_at_each_start_is_refused_in_one_line(tmp_path):
    """As a cluster's sitecustomize: a restart cannot remove the variable."""
    (tmp_path / "site").mkdir()
    setting = 'import os\nos.environ["MKL_NUM_THREADS"] = "2"\n'
    (tmp_path / "site" / "sitecustomize.py").write_text(setting)
    paths = os.pathsep.join([str(tmp_path / "site"), *PATHS])
    done = process(tmp_path, CHECK, PYTHONPATH=paths)
    threads = r"(torch|MKL) computes with 2 threads instead of 1"
    assert re.fullmatch(
        rf"bleuprint: error: systems.micro.arithmetic portable: {threads}: unset the variable that "
        r"causes it, one of MKL_NUM_THREADS=2; or set native\n",
        done.stderr,
    ), done.stderr
    assert done.returncode == 1


def test_the_bytes_of_this_version_of_torch_are_known(tmp_path):
    """If this fails for a new version of torch, add the hash that it shows to PROBE_DIGESTS.

    Before that, run it on an Intel and on an AMD processor: both must show the same hash.
    """
    script = RESTART + "import json\nfrom bleuprint.runtime.arithmetic_state import probe_digest\n"
    found = result(tmp_path, script + "print(json.dumps(probe_digest()))")
    if torch.__version__ in PROBE_DIGESTS:
        assert found == PROBE_DIGESTS[torch.__version__]
    else:
        assert not torch.__version__.endswith("+cpu"), f"add {torch.__version__}: {found}"


def test_a_probe_draws_no_number_that_others_would_have_drawn():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    arithmetic_state.probe_digest()
    assert torch.equal(torch.rand(2), expected)
