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
def test_the_benchmark_measures_the_speed_of_a_training(figure, tmp_path):
    options = ("--figures", figure, "--updates", "1", "--max-tokens", "300")
    figures = run_part("train", tmp_path, *options)

    assert figures[figure]["tiny"]["tokens_per_second"] > 0


@pytest.fixture(scope="module")
def decoding_figures(tmp_path_factory):
    """Return the figures of the smallest model, with which three sentences were translated."""
    return run_part("decode", tmp_path_factory.mktemp("decode"), "--sentences", "3")["tiny"]


def test_the_benchmark_translates_as_many_sentences_as_it_was_told(decoding_figures):
    assert decoding_figures["sentences"] == 3


def test_bleuprint_in_float32_is_the_reference_of_the_other_engines(decoding_figures):
    """`same` is the share of sentences that an engine translates as the reference does."""
    assert decoding_figures["ours float32"]["same"] == 1.0


def test_the_benchmark_measures_the_speed_of_ctranslate2(decoding_figures):
    assert decoding_figures["CTranslate2"]["tokens_per_second"] > 0
