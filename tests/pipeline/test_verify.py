"""`bleuprint verify OTHER` on results.json and dvc.lock made by hand, and in a git repository."""

import hashlib
import os
import subprocess
import sys

import pytest
from ruamel.yaml import YAML

import processes
from bleuprint.config.paths import Run
from bleuprint.pipeline import verify
from bleuprint.pipeline.first_difference import Difference, first_difference
from bleuprint.pipeline.verify import open_report
from bleuprint.report.frame import RESULTS
from bleuprint.report.training_costs import costs_csv
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, write_json
from result_rows import against, changed, frame, record

LAST = "score@small-news-en-de-1"
OTHER = {"hypotheses_sha256": "99" * 32, "training_sha256": "77" * 32}


def write(root, bleu=33.0, corpus="news-en-de", **changes):
    """A project with a report of tiny and small; `changes` to the records of small."""
    small = record("small", corpus, "first", bleu, **against("tiny", 0.04))
    (root / RESULTS.parent).mkdir(parents=True, exist_ok=True)
    records = frame(record("tiny", corpus, "first", 30.0), small)
    records = changed(records, {"system": "small"}, **changes)
    records.save(root / RESULTS)
    (root / RESULTS).with_name("costs.csv").write_text(costs_csv(records.runs))
    return root


def write_lock(root, smoothing=0.1, model="m", data="d", bpe="b", arithmetic="native"):
    """A dvc.lock; without another cause weights follow from all three, and what scoring reads."""
    weights = f"w{float(str(smoothing)[:3])}{model}{bpe}"
    train = {
        "code.train": model,
        "runs.small.news-en-de.train": {"label_smoothing": smoothing, "clip": 1.0},
        "runs.small.news-en-de.arithmetic": arithmetic,
    }
    content = {
        "score@small-news-en-de-1": stage(
            {"data/test_stats": f"d{weights}", "results/h": f"h{weights}"}, {"s.json": "s"}
        ),
        "test_stats@news-en-de": stage({}, {"data/test_stats": f"d{weights}"}),
        "translate@small-news-en-de-1": stage({"models/a": weights}, {"results/h": f"h{weights}"}),
        "train@small-news-en-de-1": stage(
            {"data/bin/x": bpe},
            {"models": weights, "results/training.json": f"t{data}{weights}"},
            train,
        ),
        "learn_vocabulary@news-en-de": stage(
            {},
            {"data/bin": bpe, "data/filter_stats/l.json": f"l{data}{model}"},
            {"inputs.news-en-de": {"inputs/a.en": data}},
        ),
    }
    with (root / "dvc.lock").open("w") as file:
        YAML().dump({"schema": "2.0", "stages": content}, file)


def stage(deps, outs, params=None):
    sums = [
        [
            {"path": path, "hash": "md5", "md5": md5.rjust(32, "0"), "size": 1}
            for path, md5 in files.items()
        ]
        for files in (deps, outs)
    ]
    return {
        "cmd": "c",
        "deps": sums[0],
        **({"params": {"reports/resolved.json": params}} if params else {}),
        "outs": sums[1],
    }


def compared(first, second):
    """The lines on two reports, and whether they are the same."""
    verification = verify.compare_reports(open_report(str(first)), open_report(str(second)))
    assert len(verification.lines) <= 10
    return verification.lines, verification.is_same


def test_the_same_bytes_from_a_file_and_a_folder(tmp_path):
    here, there = write(tmp_path / "a"), write(tmp_path / "b")
    for other in (there, there / RESULTS, (there / RESULTS).parent):
        text, is_same = compared(here, other)
        assert is_same
        assert text == [f"{here} and {other}: 2 results with the same bytes"]


def test_results_that_differ_are_named_with_their_stage(tmp_path):
    here, there = write(tmp_path / "a"), write(tmp_path / "b", 33.5, **OTHER)
    text, is_same = compared(here, there)
    assert not is_same
    assert text == [
        f"{here} and {there}: 1 result with the same bytes, 1 different",
        "different: small on news-en-de, seed 1, first: 33.00 and 33.50 BLEU",
        "  from train on: code of the training",
    ]


@pytest.mark.parametrize(
    ("changes", "stage", "causes"),
    [
        ({"smoothing": 0.2}, "train", "settings runs.small.news-en-de.train.label_smoothing"),
        ({"model": "n"}, "train", "code of stages/train.py"),
        ({"bpe": "c", "data": "e"}, "learn_vocabulary", "data inputs/a.en"),
        ({"bpe": "c"}, "learn_vocabulary", "nothing that is recorded differs: another machine or"),
    ],
)
def test_the_first_stage_by_dvc_lock(tmp_path, changes, stage, causes):
    here, there = write(tmp_path / "a"), write(tmp_path / "b", 36.0, **OTHER)
    write_lock(here)
    write_lock(there, **changes)
    text, is_same = compared(here, there)
    assert not is_same
    assert text[1] == "different: small on news-en-de, seed 1, first: 33.00 and 36.00 BLEU"
    assert text[2].startswith(f"  from {stage} on: ") and causes in text[2]


def test_a_portable_training_is_known_by_dvc_lock(tmp_path):
    root = write(tmp_path / "a")
    small = Run("small", "news-en-de", 1)
    assert not open_report(str(root)).is_portable(small)
    for arithmetic in ("native", "portable"):
        write_lock(root, arithmetic=arithmetic)
        assert open_report(str(root)).is_portable(small) == (arithmetic == "portable")


def test_a_file_of_another_name_is_not_of_the_dvc_lock_beside_it(tmp_path):
    here, there = write(tmp_path / "a"), write(tmp_path / "b", 36.0, **OTHER)
    write_lock(here)
    own = compared(here, there)[0]
    colleague = (there / RESULTS).rename(here / "colleague.json")
    assert compared(here, colleague)[0][2] == own[2] == "  from train on: code of the training"


def test_files_beside_one_that_was_downloaded_are_not_of_it(tmp_path):
    here, there = write(tmp_path / "a"), write(tmp_path / "b")
    colleague = (there / RESULTS).rename(tmp_path / "colleague.json")
    for name in ("SHA256SUMS", "costs.csv"):
        (tmp_path / name).write_text(f"{'0' * 64}  picture.iso\n")
    assert compared(here, colleague)[1]


def test_results_that_dvc_lock_does_not_name_are_reported(tmp_path, capsys):
    md5 = hashlib.md5((write(tmp_path) / RESULTS).read_bytes()).hexdigest()
    outs = f"    - path: {RESULTS}\n      hash: md5\n      md5: {md5}\n"
    (tmp_path / "dvc.lock").write_text(f"stages:\n  report:\n    outs:\n{outs}")
    open_report(str(tmp_path))
    assert capsys.readouterr().err == ""
    open_report(str(write(tmp_path, 45.0)))
    assert (
        f"{tmp_path}: {RESULTS} is not the file that dvc.lock records. " in capsys.readouterr().err
    )


def test_a_stage_that_the_other_lacks(tmp_path):
    write_lock(tmp_path)
    stages = YAML(typ="safe").load(tmp_path / "dvc.lock")["stages"]
    assert first_difference(stages, stages, LAST) is None
    fewer = {name: stages[name] for name in stages if not name.startswith("translate")}
    assert first_difference(stages, fewer, LAST) == Difference("translate", ["no such stage there"])


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (
            "stages: [1]\n",
            r"/b: dvc\.lock is damaged: field stages: .*; restore it \(git checkout\)",
        ),
        ("stages:\n  a: 1\n", r"/b: dvc\.lock is damaged: field stages\.a: .*; restore it"),
        ("stages:\n  a: {\n", r"/b: dvc\.lock:\d+: not valid YAML: "),
    ],
)
def test_a_damaged_dvc_lock_is_named_if_it_is_needed(tmp_path, damaged, message):
    """To say why results differ; the same results need no reason."""
    here, there = write(tmp_path / "a"), write(tmp_path / "b", 36.0, **OTHER)
    write_lock(here)
    (there / "dvc.lock").write_text(damaged)
    with pytest.raises(UserError, match=message):
        compared(here, there)
    write(there)
    assert compared(here, there)[1]


def test_metrics_that_one_file_lacks_are_named(tmp_path):
    first, second = write(tmp_path / "a"), write(tmp_path / "b")
    content = read_json(second / RESULTS)
    left_out = ("chrf2pp", "ter", "loss", "perplexity")
    content["metrics"] = [e for e in content["metrics"] if e["metric"] not in left_out]
    write_json(second / RESULTS, content)
    text, is_same = compared(first, second)
    assert is_same
    assert text[1] == ("not compared, since one side lacks them: chrf2pp, loss, perplexity, ter")


def test_a_result_of_1_0_is_told_in_one_line(tmp_path):
    path = write(tmp_path / "b") / RESULTS
    content = read_json(path)
    write_json(path, {"cells": content["runs"], "measures": content["metrics"]})
    message = f"^{path}: a result of bleuprint 1.0, with the key cells instead of runs; run its "
    with pytest.raises(UserError, match=message):
        open_report(str(path))


def test_results_that_one_side_lacks_are_counted(tmp_path):
    here, there = write(tmp_path / "a"), write(tmp_path / "b")
    frame(record("tiny", "news-en-de", "first", 30.0)).save(there / RESULTS)
    text, is_same = compared(here, there)
    assert not is_same
    assert text[1] == "only here: 1 result, only there: 0"


def test_the_first_three_causes_are_written_out(tmp_path):
    changes = {
        "hypotheses_sha256": "99" * 32,
        "settings_sha256": "ab" * 32,
        "sources_sha256": "bc" * 32,
        "binary_sha256": "cd" * 32,
    }
    here, there = write(tmp_path / "a"), write(tmp_path / "b", 33.5, **changes)
    text, _ = compared(here, there)
    assert text[2] == "  from split on: settings; test set; data"
    there = write(tmp_path / "b", 33.5, scored_with="torch 2.0.0, sacrebleu 2.7.0", **changes)
    text, _ = compared(here, there)
    assert text[2] == "  from split on: settings; test set; data; and 1 more"


def test_many_differences_fit_ten_lines(tmp_path):
    here, there = write(tmp_path / "a"), write(tmp_path / "b")
    for root, more in ((here, 0.0), (there, 0.5)):
        rows = [
            record(
                *("tiny", "news-en-de", f"t{n}", 30.0 + more * (n < 9)),
                models=4 + n * int(more * 2),
                hypotheses_sha256=f"{n}{more}",
                settings_sha256=f"{n % 2}{more * (n % 2)}",
                binary_sha256=f"{n % 3}{more * (n % 3)}",
            )
            for n in range(12)
        ]
        for n, row in enumerate(rows):
            row["metrics"]["bleu", ""]["signature"] = f"tok:a|version:{more * (n % 5)}"
        frame(*rows).save(root / RESULTS)
    frame(*rows[1:]).save(there / RESULTS)
    text, is_same = compared(here, there)
    assert not is_same
    assert text[2].endswith("30.00 and 30.50 BLEU, and 1 other")
    assert text[3] == "  from binarize on: settings; data; signature version:0.0 and version:0.5"
    assert text[7].endswith(" more groups of results, by where and why they differ)")


def bleuprint(root, *arguments):
    command = (sys.executable, "-m", "bleuprint", "verify", *arguments)
    done = processes.run_text(command, root)
    return done.returncode, done.stdout, done.stderr


def test_the_exit_status_and_a_revision(tmp_path):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DVC_", "GIT_"))}
    kept |= {f"GIT_{a}_{b}": "t@x" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
    root = write(tmp_path / "larger" / "project")
    write_lock(root)
    (root / "params.yaml").touch()  # the project's root
    for command in (
        ["git", "init", "--quiet", str(root.parent)],
        ["dvc", "init", "--quiet", "--subdir"],
        ["git", "add", "--all"],
        ["git", "commit", "--quiet", "--message", "first"],
    ):
        subprocess.run(command, cwd=root, env=kept, check=True)
    same, alone = (
        "here and HEAD: 2 results with the same bytes\n",
        "here, reports/ is as committed: ",
    )
    status, output, _ = bleuprint(root, "HEAD")
    assert status == 0 and output.startswith(f"{same}{alone}nothing has run since. To run: make")
    (folder := root / Run("tiny", "news-en-de", 1).results_folder).mkdir(parents=True)
    (folder / "scores.json").touch()
    assert bleuprint(root, "HEAD")[:2] == (0, same)
    write(root, 33.4, **OTHER)
    write_lock(root, smoothing="0.2\r\x1c\u2028\x85\0\ufeff")
    status, output, _ = bleuprint(root, "HEAD")
    counts = "1 result with the same bytes, 1 different\n"
    assert status == 5 and output.startswith(f"here and HEAD: {counts}")
    assert (
        "from train on: settings runs.small.news-en-de.train.label_smoothing 0.2      and 0.1\n"
        in output
    )
    other = write(tmp_path / "other", corpus="talks-en-fr")
    for name, message in {
        str(other): "another experiment: no system, corpus, seed and test set in common with here",
        "nowhere": "no Git revision, DVC experiment, file or folder: unknown Git revision",
        str(tmp_path): "reports/results.json: no such file; give a results.json, a release,",
    }.items():
        status, output, error = bleuprint(root, name)
        assert (status, output, error.count("\n")) == (1, "", 1)
        assert message in error
