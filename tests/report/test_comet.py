"""COMET through comet-score; with COMET itself where that is on the PATH."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import result_trees as trees
from bleuprint.report.comet import comet_score

COMET = shutil.which("comet-score")
needs_comet = pytest.mark.skipif(COMET is None, reason="comet-score is not on the PATH")

# A COMET model of a few weights, drawn at random: its scores mean nothing, and repeat.
TINY_MODEL = """
import sys, torch, yaml
from pathlib import Path
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import XLMRobertaConfig, XLMRobertaModel, XLMRobertaTokenizerFast
from comet.models import RegressionMetric

root, text = Path(sys.argv[1]), sys.argv[2]
tokenizer = Tokenizer(models.Unigram())
tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
unigram = trainers.UnigramTrainer(vocab_size=60, special_tokens=special, unk_token="<unk>")
tokenizer.train_from_iterator([text], unigram)
tokenizer.post_processor = processors.TemplateProcessing(
    single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
)
fast = XLMRobertaTokenizerFast(tokenizer_object=tokenizer)
fast.save_pretrained(root / "encoder")
config = XLMRobertaConfig(
    vocab_size=len(fast), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=32, max_position_embeddings=514, pad_token_id=1,
)
torch.manual_seed(1)
XLMRobertaModel(config, add_pooling_layer=False).save_pretrained(root / "encoder")
settings = dict(
    encoder_model="XLM-RoBERTa", pretrained_model=str(root / "encoder"), hidden_sizes=[8]
)
model = RegressionMetric(**settings)
(root / "checkpoints").mkdir()
state = {"state_dict": model.state_dict(), "hyper_parameters": dict(model.hparams)}
torch.save({**state, "pytorch-lightning_version": "2.0.0"}, root / "checkpoints" / "model.ckpt")
about = {**settings, "class_identifier": "regression_metric"}
(root / "hparams.yaml").write_text(yaml.safe_dump(about))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    trees.write_all(root, trees.settings_in(root))
    return root


def comet(root: Path, *arguments: str, status: int = 0, **environment: str) -> str:
    """What `bleuprint comet` prints: on stderr if it fails."""
    command = [
        sys.executable,
        "-m",
        "bleuprint.cli.main",
        "comet",
        "--corpus",
        "news-en-de",
        *arguments,
    ]
    variables = {**os.environ, **environment}
    done = subprocess.run(
        command, cwd=root, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    assert not status or done.stderr.count("\n") == 1
    return done.stderr if status else done.stdout


def program(folder: Path, text: str) -> str:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_program_that_is_not_there(tree: Path) -> None:
    output = comet(tree, "--system", "tiny", "--program", "no-comet", status=1)
    assert output.startswith("bleuprint: error: no-comet: no such program. COMET needs an env")
    assert "comet/bin/pip install unbabel-comet" in output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exit 3", "printed no score"),
        ("echo one >&2; echo 'MemoryError: two' >&2; exit 1", "wmt22-comet-da: MemoryError: two"),
        ("echo a score", "wmt22-comet-da: printed no score"),
    ],
)
def test_a_program_that_fails(tree: Path, tmp_path: Path, text: str, message: str) -> None:
    there = program(tmp_path, text)
    assert message in comet(tree, "--system", "tiny", "--program", there, status=1)


def test_every_test_set_with_its_lines_and_the_model(tree: Path, tmp_path: Path) -> None:
    # 40 lines in each of the three files that come behind -s, -t and -r
    there = program(tmp_path, 'printf "x\\tscore: 0.%d\\n" $(cat "$6" "$8" "${10}" | wc -l)')
    output = comet(tree, "--system", "tiny", "--program", there, "--model", "m")
    assert output == "first\t0.1200\tm\nsecond\t0.1200\tm\n"


def test_a_carriage_return_ends_no_line(tmp_path: Path) -> None:
    there = program(
        tmp_path, 'printf "x\\tscore: %d\\n" $(cat "$6" "$8" "${10}" | tr -cd "\\r" | wc -c)'
    )
    assert comet_score(["a\rb"], ["\r"], ["c\r"], "m", there) == 0


def test_texts_changed_since_scoring(tree: Path, tmp_path: Path) -> None:
    shutil.copytree(tree, tmp_path / "copy")
    path = tmp_path / "copy" / "data" / "split" / "news-en-de" / "test.first.en"
    path.write_bytes(path.read_bytes().replace(trees.WORD.encode(), b"other", 1))
    output = comet(tmp_path / "copy", "--system", "tiny", "--program", "true", status=1)
    assert "test.first.en: has changed since system tiny" in output


@needs_comet
def test_a_model_that_is_not_to_be_had(tree: Path, tmp_path: Path) -> None:
    offline = {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)}
    output = comet(tree, "--system", "tiny", "--model", "none/such", status=1, **offline)
    assert "comet-score: none/such: " in output


@pytest.mark.slow
@needs_comet
def test_the_score_is_comets_own(tree: Path, tmp_path: Path) -> None:
    assert COMET is not None
    split = tree / "data" / "split" / "news-en-de"
    python = str(Path(COMET).parent / "python")
    text = (split / "test.first.de").read_text("utf-8")
    subprocess.run([python, "-c", TINY_MODEL, tmp_path, text], check=True, capture_output=True)
    model = str(tmp_path / "checkpoints" / "model.ckpt")
    for system in ("tiny", "small"):
        first, _ = comet(tree, "--system", system, "--model", model).splitlines()
        files = ["-s", split / "test.first.en", "-r", split / "test.first.de"]
        files += ["-t", tree / "results" / system / "news-en-de" / "1/hypotheses/test.first.de"]
        command = [COMET, *map(str, files), "--model", model, "--only_system"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        (score,) = re.findall(r"score: (\S+)", done.stdout)
        assert first == f"first\t{score}\t{model}"
