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


def run_script(folder, script, **variables):
    """Run a Python script in a new process, and return the finished process.

    Args:
        folder: A folder, which becomes a project whose system `micro` on the corpus `toy` has
            portable arithmetic.
        script: The source of the script.
        **variables: Environment variables of the process. No other variable of the libraries that
            compute is set.
    """
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


def printed_json(folder, script, **variables):
    """Run a script that prints JSON (see `run_script` for the arguments); return its value."""
    process = run_script(folder, script, **variables)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def test_a_restart_drops_the_variables_of_computing_libraries_that_the_user_has_set(tmp_path):
    """They could change the bytes of a training. The variables of other libraries are kept.

    OTHERS and HARMFUL are the variables that MKL, oneDNN, OpenMP and other libraries read; PORTABLE
    and VARIABLES are those that we set. The script SHOW prints its environment after the restart.
    """
    kept = {"HOME": str(tmp_path), "TORCH_LOGS": "", "GOMP_SPINCOUNT": "7", "MALLOC_ARENA_MAX": "1"}
    dropped = OTHERS | HARMFUL

    environment = printed_json(tmp_path, SHOW, **kept, **dropped)

    assert kept.items() <= environment.items()
    assert PORTABLE.items() <= environment.items()
    assert library_variables(environment) == library_variables(PORTABLE | VARIABLES)


def test_a_portable_training_computes_the_same_bytes_with_all_variables_set(tmp_path):
    """The script TRAIN restarts itself, and prints hashes of what a small training computes.

    OTHERS and HARMFUL are the variables that MKL, oneDNN, OpenMP and other libraries read.
    """
    expected = printed_json(tmp_path, TRAIN)

    assert printed_json(tmp_path, TRAIN, **OTHERS, **HARMFUL) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), sorted((OTHERS | HARMFUL).items()))
def test_a_portable_training_computes_the_same_bytes_with_each_variable(
    tmp_path, shared_folder, name, value
):
    """Each variable, such as MKL_CBWR=AVX2, makes a library compute in another way.

    The script TRAIN restarts itself without it, and prints hashes of a small training.
    The expected hashes, without any variable, are computed once for all cases (`shared_folder`).
    """

    def train_without_variables(folder):
        folder.mkdir()
        (folder / "expected.json").write_text(json.dumps(printed_json(folder, TRAIN)))

    folder = shared_folder("portable-bytes", train_without_variables)
    expected = json.loads((folder / "expected.json").read_text())

    assert printed_json(tmp_path, TRAIN, **{name: value}) == expected


# Prints a list: the deviation found at the start (None if the state is portable), then the one that
# is found after each change. CHANGES are pairs of statements: a change, and one that undoes it.
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


def test_each_setting_that_makes_arithmetic_unportable_is_described(tmp_path):
    """A new process changes one setting after the other, and undoes each change.

    The first item of a case changes a setting of torch or its libraries, the second undoes it, and
    the third is the expected description. Before all changes, nothing is described.
    """
    cases = [
        (
            "torch.set_num_threads(2)",
            "torch.set_num_threads(1)",
            "torch computes with 2 threads instead of 1",
        ),
        (
            "library.MKL_Set_Num_Threads_Local(2)",
            "library.MKL_Set_Num_Threads_Local(0)",
            "MKL computes with 2 threads instead of 1",
        ),
        (
            "torch.set_default_dtype(torch.float64)",
            "torch.set_default_dtype(torch.float32)",
            "torch's default type is torch.float64 instead of torch.float32",
        ),
        (
            "torch.set_float32_matmul_precision('medium')",
            "torch.set_float32_matmul_precision('highest')",
            "torch's precision of float32 products is 'medium' instead of 'highest'",
        ),
        (
            "torch.set_autocast_enabled('cpu', True)",
            "torch.set_autocast_enabled('cpu', False)",
            "torch computes in a type of its own choice (autocast)",
        ),
        (
            "torch.backends.mkldnn.set_flags(False)",
            "torch.backends.mkldnn.set_flags(True)",
            "oneDNN is switched off",
        ),
        (
            "torch.set_flush_denormal(True)",
            "torch.set_flush_denormal(False)",
            "numbers below 2^-126 are rounded to 0 (denormals)",
        ),
    ]
    changes = [(change, undo) for change, undo, _ in cases]
    script = RESTART + STATES.replace("CHANGES", repr(changes))

    at_start, *after_changes = printed_json(tmp_path, script)

    assert at_start is None
    assert after_changes == [description for _, _, description in cases]


# A library with another pow() than that of glibc, which the learning rate is computed with.
POW = """
#include <math.h>
double pow(double base, double exponent) {
    return nextafter(exp(exponent * log(base)), 4.0);
}
"""


@needs_programs("gcc")
def test_a_preloaded_library_with_another_power_function_is_refused(tmp_path):
    """LD_PRELOAD replaces pow() of the C library, by which the learning rate is computed.

    The check computes a known value, and finds that its last bit differs.
    """
    (tmp_path / "pow.c").write_text(POW)
    library = tmp_path / "libpow.so"
    command = ["gcc", "-shared", "-fPIC", "-fno-builtin", "-o", library, "pow.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)

    process = run_script(tmp_path, CHECK, LD_PRELOAD=str(library))

    assert process.returncode == 1
    assert process.stderr == (
        "bleuprint: error: systems.micro.arithmetic portable: a test computation gives other bytes "
        f"than elsewhere. Unset the variable that causes it, one of LD_PRELOAD={library}. "
        "Or set arithmetic: native\n"
    )


def test_the_arithmetic_of_this_machine_is_portable(tmp_path):
    assert run_script(tmp_path, CHECK).returncode == 0


def test_a_variable_that_a_module_sets_at_each_start_of_python_is_refused(tmp_path):
    """Python runs sitecustomize.py at each start, so a restart cannot remove the variable."""
    (tmp_path / "site").mkdir()
    setting = 'import os\nos.environ["MKL_NUM_THREADS"] = "2"\n'
    (tmp_path / "site" / "sitecustomize.py").write_text(setting)
    paths = os.pathsep.join([str(tmp_path / "site"), *PATHS])

    process = run_script(tmp_path, CHECK, PYTHONPATH=paths)

    assert process.returncode == 1
    threads = r"(torch|MKL) computes with 2 threads instead of 1"
    assert re.fullmatch(
        rf"bleuprint: error: systems.micro.arithmetic portable: {threads}\. Unset the variable "
        r"that causes it, one of MKL_NUM_THREADS=2\. Or set arithmetic: native\n",
        process.stderr,
    ), process.stderr


def test_the_test_computation_gives_the_known_bytes_of_this_version_of_torch(tmp_path):
    """If this fails for a new version of torch, add the hash that it shows to PROBE_DIGESTS.

    Before that, run it on an Intel and on an AMD processor: both must show the same hash.
    """
    script = RESTART + "import json\nfrom bleuprint.runtime.arithmetic_state import probe_digest\n"

    digest = printed_json(tmp_path, script + "print(json.dumps(probe_digest()))")

    if torch.__version__ in PROBE_DIGESTS:
        assert digest == PROBE_DIGESTS[torch.__version__]
    else:
        # Versions for GPUs are not in PROBE_DIGESTS.
        assert not torch.__version__.endswith("+cpu"), f"add {torch.__version__}: {digest}"


def test_the_test_computation_keeps_the_state_of_the_random_numbers():
    """It runs before a training, whose random numbers must not depend on it."""
    torch.manual_seed(3)
    expected = torch.rand(2)

    torch.manual_seed(3)
    arithmetic_state.probe_digest()

    assert torch.equal(torch.rand(2), expected)
