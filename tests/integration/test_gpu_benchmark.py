"""The benchmark of GPUs runs without one, so that it still works when a GPU is at hand."""

import json
import subprocess
import sys

import pytest

from root import ROOT

pytestmark = pytest.mark.slow


def run_part(part, out, *options):
    """Run a part of benchmarks/gpu.py on the CPU in the smallest size, and return its figures.

    Args:
        part: The part.
        out: The folder of its output.
        *options: Further options.
    """
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), part]
    command += ["--device", "cpu", "--sizes", "tiny", "--out", str(out), *options]
    subprocess.run(command, check=True, timeout=180)
    return json.loads((out / f"gpu-{part}.json").read_text())["figures"]


@pytest.mark.parametrize("figure", ["default", "eager", "annotated style", "nn.Transformer"])
def test_a_training_has_a_speed(figure, tmp_path):
    figures = run_part(
        "train", tmp_path, "--figures", figure, "--updates", "1", "--max-tokens", "300"
    )

    assert figures[figure]["tiny"]["tokens_per_second"] > 0


def test_all_engines_translate_and_ours_is_the_reference(tmp_path):
    figures = run_part("decode", tmp_path, "--sentences", "3")

    assert figures["tiny"]["sentences"] == 3
    assert figures["tiny"]["ours float32"]["same"] == 1.0
    assert figures["tiny"]["CTranslate2"]["tokens_per_second"] > 0
