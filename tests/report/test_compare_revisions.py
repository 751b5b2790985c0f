"""`bleuprint compare` without a corpus: trees made by hand, and revisions in a DVC repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import ttest_rel

import processes
import result_trees as trees
from bleuprint.config.paths import Cell, ledger
from bleuprint.runtime.files import read_json, write_json
from bleuprint.scoring.record import SCORES
from measuring import paired_tests
from params import write_resolved

_AS = {f"GIT_{who}_{what}": "t@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def run(root: Path, *command: str, status: int = 0) -> str:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DVC_", "GIT_", "BLEUPRINT_"))}
    environment = {**kept, **_AS, "GIT_CONFIG_GLOBAL": os.devnull, "COLUMNS": "200"}
    environment |= {"PYTHONUTF8": "1", "DVC_NO_ANALYTICS": "1"}
    if command[0] == sys.executable:
        done = processes.run_text(command, root, environment)
    else:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status else done.stdout


def compare(root: Path, first: str, second: str, status: int = 0) -> str:
    return run(root, sys.executable, "-m", "bleuprint", "compare", first, second, status=status)


def lines(output: str) -> list[list[str]]:
    """The cells of each line of the tables."""
    return [re.split(r" {2,}", line.strip()) for line in output.split("\n")]


def bleu(root: Path, cell: Cell) -> Any:
    """BLEU of the first test set in scores.json."""
    measures = read_json(root / cell.results / SCORES)["first"]["measures"]
    return next(each for each in measures if (each["measure"], each["group"]) == ("bleu", ""))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    trees.write_all(root, trees.settings_in(root, corpora={"news-en-de": ("first",)}))
    return root


@pytest.fixture
def tree(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "tree")


@pytest.fixture(scope="module")
def repository(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two commits: at the second, `tiny` decodes with another beam, and a rule drops more."""
    root = shutil.copytree(made, tmp_path_factory.mktemp("repository") / "project")
    (root / "dvc.yaml").unlink()  # `dvc add` takes no outputs of stages
    run(root, "git", "init", "--quiet", "--initial-branch", "main")
    run(root, "dvc", "init", "--quiet")
    run(root, "dvc", "add", "--quiet", "data", "results")
    run(root, "git", "add", "--all")
    run(root, "git", "commit", "--quiet", "--message", "first")
    params = (root / "params.yaml").read_text("utf-8")
    (root / "params.yaml").write_text(params.replace("beam: 2", "beam: 5", 1), encoding="utf-8")
    write_resolved(root)
    path = root / ledger("news-en-de", "filter")
    account = read_json(path)
    account["sets"]["train"]["dropped"]["filter_rule"] = 1234
    account["sets"]["train"]["pairs_out"] = 8763
    write_json(path, account)
    hypotheses = root / Cell("tiny", "news-en-de", 1).results / "hypotheses" / "test.first.de"
    references = (root / "data/split/news-en-de/test.first.de").read_text("utf-8").split("\n")[:-1]
    trees.write_lines(hypotheses, references)
    settings = trees.load(root / "params.yaml")
    trees.write_translation(root, settings, Cell("tiny", "news-en-de", 1))
    trees.write_maps(root, settings, Cell("tiny", "news-en-de", 1))
    trees.score_cell(settings, "tiny", "news-en-de", 1, root)
    run(root, "dvc", "add", "--quiet", "data", "results")
    run(root, "git", "commit", "--quiet", "--all", "--message", "second")
    return root


@pytest.mark.usefixtures("all_samples")
def test_two_systems_of_one_seed(tree: Path) -> None:
    params = (tree / "params.yaml").read_text("utf-8")
    head, small = params.split("  small:")
    small = small.replace("updates: 10", "updates: 20").replace("d_ff: 64", "d_ff: 128")
    (tree / "params.yaml").write_text(f"{head}  small:{small}", encoding="utf-8")
    printed = compare(tree, "tiny", "small", status=1)
    expected = "results/small/news-en-de/1/training.json: not run with these settings"
    forced = "dvc repro --force --single-item train@small-news-en-de-1"
    assert printed == (
        f"bleuprint: error: {expected}; run: dvc repro, or if it runs nothing: {forced}\n"
    )
    trees.write_cell(
        tree, trees.load(tree / "params.yaml"), Cell("small", "news-en-de", 1), errors=0.15
    )
    path = tree / Cell("small", "news-en-de", 1).results / "training.json"
    write_json(path, {**read_json(path), "valid_loss": 0.5, "updates": 700})
    output = compare(tree, "tiny", "small")
    assert output.startswith("tiny and small\n")
    found = lines(output)
    settings = found[found.index(["Settings"]) : found.index(["Training"])]
    assert ["model.d_ff", "64", "128"] in settings and ["train.max_updates", "10", "20"] in settings
    assert len(settings) == 7
    for row in (["valid loss", "1.250", "0.500"], ["updates", "500", "700"]):
        assert ["news-en-de", *row] in found
    assert "target tokens" not in output  # which are the same
    cells = [Cell(system, "news-en-de", 1) for system in ("tiny", "small")]
    scores = [bleu(tree, cell)["value"] for cell in cells]
    texts = {
        cell.system: (tree / cell.results / "hypotheses/test.first.de").read_text().split("\n")[:-1]
        for cell in cells
    }
    references = (tree / "data/split/news-en-de/test.first.de").read_text().split("\n")[:-1]
    p = paired_tests(texts, references, "de")["small"]["bleu"].bootstrap
    (row,) = [line for line in found if line[1:3] == ["first", "BLEU"]]
    assert row[3:5] == [f"{one:.1f}" for one in scores]
    assert row[5:] == [f"{scores[1] - scores[0]:+.1f}", f"{p:.3f}", "≥ 85 %"] and p < 0.05
    assert "the same: data\n" in output


def test_several_seeds_are_paired(tmp_path: Path) -> None:
    settings = trees.settings_in(tmp_path, corpora={"news-en-de": ("first",)}, seeds=(1, 2, 3))
    trees.write_all(tmp_path, settings)
    output = compare(tmp_path, "tiny", "small")
    scores = [
        [bleu(tmp_path, Cell(system, "news-en-de", seed))["value"] for seed in (1, 2, 3)]
        for system in ("tiny", "small")
    ]
    p = ttest_rel(*scores).pvalue
    (row,) = [line for line in lines(output) if line[1:3] == ["first", "BLEU"]]
    assert re.fullmatch(r"\d+\.\d ± \d+\.\d", row[3])
    assert row[-2] == f"{p:.3f}" + (" n.s." if p >= 0.05 else "")
    assert "scores: means over the seeds 1, 2, 3; p: paired t-test over them" in output
    assert "each p is of one test alone, not corrected for the number of tests" in output
    assert "Settings" not in output and "the same: settings, data" in output


def test_other_test_sets_have_no_p(repository: Path, tmp_path: Path) -> None:
    root = shutil.copytree(repository, tmp_path / "copy", symlinks=True)
    texts = root / "data/split/news-en-de"
    references = (texts / "test.first.de").read_text("utf-8").split("\n")[:-1]
    trees.write_lines(texts / "test.first.de", [*references[1:], references[0]])
    trees.describe(root, settings := trees.load(root / "params.yaml"), "news-en-de")
    trees.score_cell(settings, "small", "news-en-de", 1, root)
    output = compare(root, "small@HEAD", "small")
    expected = "news-en-de, first: no p: the references of the test set are not the same"
    assert expected in output
    assert [line[-1] for line in lines(output) if line[1:3] == ["first", "BLEU"]] == ["–"]


def test_names_without_an_at_sign(repository: Path, tmp_path: Path) -> None:
    """They are systems, where there is one of the name; otherwise revisions."""
    assert compare(repository, "HEAD~1", "HEAD") == compare(repository, "@HEAD~1", "@HEAD")
    assert compare(repository, "tiny", "HEAD~1") == compare(repository, "tiny", "@HEAD~1")
    root = shutil.copytree(repository, tmp_path / "copy", symlinks=True)
    run(root, "git", "tag", "small", "HEAD~1")
    assert compare(root, "tiny", "small").startswith("tiny and small\n")


def test_seeds_that_one_side_lacks_are_left_out(repository: Path, tmp_path: Path) -> None:
    root = shutil.copytree(repository, tmp_path / "copy", symlinks=True)
    path = root / "params.yaml"
    path.write_text(path.read_text("utf-8").replace("- 1\n", "- 1\n- 2\n", 1), encoding="utf-8")
    settings = trees.load(path)
    assert settings.seeds == (1, 2)
    for system in settings.systems:
        trees.write_cell(root, settings, Cell(system, "news-en-de", 2), errors=0.9)
    output = compare(root, "small@HEAD", "small")
    (row,) = [line for line in lines(output) if line[1:3] == ["first", "BLEU"]]
    assert row[3] == row[4] and row[5] == "+0.0"
    assert "scores: of seed 1; p: paired bootstrap" in output


def test_other_code_data_and_signatures_are_shown(tree: Path) -> None:
    path = tree / Cell("small", "news-en-de", 1).results / "training.json"
    write_json(path, {**read_json(path), "data": "d" * 64, "code": "e" * 64})
    path = tree / Cell("small", "news-en-de", 1).results / SCORES
    old = bleu(tree, Cell("small", "news-en-de", 1))["signature"]
    new = old.replace("tok:13a", "tok:intl")
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    output = compare(tree, "tiny", "small")
    assert ["news-en-de", "signature of BLEU, first", old, new] in lines(output)
    assert ["news-en-de", "SHA-256 of the binary corpus", "b1b1b1b1b1b1", "dddddddddddd"] in lines(
        output
    )
    assert ["news-en-de", "SHA-256 of the code", "c0c0c0c0c0c0", "eeeeeeeeeeee"] in lines(output)


def test_nothing_differs_in_one_line(repository: Path) -> None:
    assert compare(repository, "tiny@HEAD", "tiny") == (
        "tiny@HEAD and tiny: nothing differs: settings, data, training, scores\n"
    )


def test_a_revision_of_another_version_is_told_by_its_name(
    repository: Path, tmp_path: Path
) -> None:
    root = shutil.copytree(repository, tmp_path / "copy", symlinks=True)
    resolved = root / "reports" / "resolved.json"
    resolved.write_text(resolved.read_text("utf-8").replace('"clip_norm"', '"clip"'), "utf-8")
    run(root, "git", "commit", "--quiet", "--all", "--message", "third")
    printed = compare(root, "tiny@HEAD", "tiny", status=1)
    assert (
        printed.startswith("bleuprint: error: HEAD: reports/resolved.json:") and "clip" in printed
    )
    run(root, "git", "rm", "--quiet", "reports/resolved.json")
    run(root, "git", "commit", "--quiet", "--all", "--message", "fourth")
    printed = compare(root, "tiny@HEAD", "tiny", status=1)
    assert printed == "bleuprint: error: HEAD: has no reports/resolved.json\n"


def test_a_revision_and_what_is_here(repository: Path) -> None:
    output = compare(repository, "tiny@HEAD~1", "tiny")
    found = lines(output)
    assert output.startswith("tiny@HEAD~1 and tiny\n")
    assert ["decode.beam", "2", "5"] in found
    assert ["news-en-de", "train", "filter", "dropped by filter_rule", "1", "1,234"] in found
    assert ["news-en-de", "train", "filter", "out", "9,996", "8,763"] in found
    (row,) = [line for line in found if line[1:3] == ["first", "BLEU"]]
    # its translations are now the references
    assert row[4] == "100.0" and row[-2:] == ["0.001", "≥ 85 %"]
    assert run(repository, "git", "status", "--porcelain") == ""


def test_a_project_in_a_folder_of_a_larger_repository(made: Path, tmp_path: Path) -> None:
    root = shutil.copytree(made, tmp_path / "larger" / "project")
    (root / "dvc.yaml").unlink()
    run(root.parent, "git", "init", "--quiet")
    run(root, "dvc", "init", "--quiet", "--subdir")
    run(root, "dvc", "add", "--quiet", "data", "results")
    run(root, "git", "add", "--all")
    run(root, "git", "commit", "--quiet", "--message", "first")
    nothing = "nothing differs: settings, data, training, scores\n"
    assert compare(root, "tiny@HEAD", "tiny") == f"tiny@HEAD and tiny: {nothing}"
    (root / "notes").mkdir()
    below = compare(root / "notes", "tiny@HEAD", "small@HEAD")
    assert below.startswith("tiny@HEAD and small@HEAD\n")


def test_a_revision_alone_means_every_system(repository: Path) -> None:
    output = compare(repository, "@main~1", "@")
    assert re.findall(r"^\w+@main~1 and \w+$", output, re.M) == [
        *("tiny@main~1 and tiny", "small@main~1 and small"),
    ]
    one = compare(repository, "small", "@HEAD~1")
    assert one.startswith("small and small@HEAD~1\n") and "the same: settings" in one


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("tinny", "small", "no systems entry 'tinny'"),
        ("tiny", "smal@HEAD~1", "no systems entry 'smal'"),
        ("tiny", "tiny@nowhere", "nowhere: neither a Git revision nor a DVC experiment"),
        ("tiny", "tiny@HEAD:params.yaml", "HEAD:params.yaml: a file or folder in git, not a rev"),
        ("tiny", "tiny", "tiny: compared with itself"),
        ("", "tiny", "'': not SYSTEM, SYSTEM@REVISION or REVISION"),
    ],
)
def test_mistakes_are_told_in_one_line(
    repository: Path, first: str, second: str, message: str
) -> None:
    printed = compare(repository, first, second, status=1)
    assert printed.count("\n") == 1 and message in printed


def test_outputs_that_the_cache_lacks_are_named(repository: Path, tmp_path: Path) -> None:
    run(tmp_path, "git", "clone", "--quiet", str(repository), "clone")
    printed = compare(tmp_path / "clone", "tiny@HEAD~1", "small@HEAD~1", status=1)
    assert printed.count("\n") == 1 and "of HEAD~1: not in DVC's cache; dvc pull" in printed
    assert "git checkout HEAD~1 && dvc repro" in printed
    printed = compare(tmp_path / "clone", "tiny", "small", status=1)
    expected = "results/tiny/news-en-de/1/scores.json: no such file; run: dvc repro, or dvc pull"
    assert printed == f"bleuprint: error: {expected}\n"
