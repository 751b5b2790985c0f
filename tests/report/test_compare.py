"""`bleuprint compare`: rows of a report, and of those of two revisions of git."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import ttest_rel

import processes
import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.report import frame
from bleuprint.report.compare import (
    compare_systems,
    p_values_by_metric,
    score_texts,
)
from bleuprint.report.compared_sentences import sentence_bleu_changes
from bleuprint.report.compared_systems import ReportedSystem, ScoresPair
from bleuprint.report.frame import RESULTS
from bleuprint.report.records import collect
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json
from bleuprint.scoring.record import SCORES_FILE
from bleuprint.text.parallel import read_lines
from measuring import paired_tests, value_of
from params import write_resolved
from result_rows import frame as made_by_hand
from result_rows import record
from scoring import text

TEST = "test.first"
TINY, SMALL = (Run(system, "news-en-de", 1) for system in ("tiny", "small"))
_AS = {f"GIT_{who}_{what}": "t@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def run(root, *command, status=0):
    """What a command prints: on stderr if it fails."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DVC_", "GIT_", "BLEUPRINT_"))}
    environment = {**kept, **_AS, "GIT_CONFIG_GLOBAL": os.devnull, "COLUMNS": "200"}
    environment |= {"PYTHONUTF8": "1", "DVC_NO_ANALYTICS": "1"}
    if command[0] == sys.executable:
        done = processes.run_text([*command], root, environment)
    else:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status else done.stdout


def compare(root, *arguments, status=0):
    return run(root, sys.executable, "-m", "bleuprint", "compare", *arguments, status=status)


def lines(output):
    """The runs of each line of the tables."""
    return [re.split(r" {2,}", line.strip()) for line in output.split("\n")]


def bleu_row(output):
    (row,) = [line for line in lines(output) if line[1:3] == ["first", "BLEU"]]
    return row


def translate(root, run, edits):
    """Put the references in place of translations, but for the edited lines; and score them."""
    settings = trees.load_settings(root / "params.yaml")
    references = list(read_lines(root / "data" / "split" / run.corpus / f"{TEST}.de"))
    edited = [edits.get(number, line) for number, line in enumerate(references)]
    trees.translate(root, settings, run, "first", edited)


def report(root):
    collect(trees.load_settings(root / "params.yaml"), root).save(root / RESULTS)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Results of two systems; five lines differ, with control characters in one."""
    root = tmp_path_factory.mktemp("tree")
    trees.write_all(root, trees.settings_in(root, corpora={"news-en-de": ("first", "second")}))
    (twentieth,) = list(read_lines(root / f"data/split/news-en-de/{TEST}.de"))[20:21]
    nothing = dict.fromkeys((3, 8, 9), "nothing")  # of the same BLEU: nothing right
    translate(root, TINY, {**nothing, 20: f"\x1b[31m{twentieth}\x9b\u202e"})
    translate(root, SMALL, {30: "\u2028\tworse"})
    report(root)
    return root


@pytest.fixture
def copy(tree, tmp_path):
    return shutil.copytree(tree, tmp_path / "copy")


@pytest.fixture(scope="module")
def repository(tree, tmp_path_factory):
    """In a folder of a larger one; at the second commit, `tiny` decodes with another beam."""
    larger = tmp_path_factory.mktemp("larger")
    root = shutil.copytree(tree, larger / "project")
    run(larger, "git", "init", "--quiet", "--initial-branch", "main")
    run(root, "dvc", "init", "--quiet", "--subdir")
    run(root, "git", "add", "reports", "params.yaml", ".dvc")
    run(root, "git", "commit", "--quiet", "--message", "first")
    params = (root / "params.yaml").read_text("utf-8")
    (root / "params.yaml").write_text(params.replace("beam: 2", "beam: 5", 1), encoding="utf-8")
    write_resolved(root)
    translate(root, TINY, {})
    trees.write_run(root, trees.load_settings(root / "params.yaml"), TINY, errors=0.5)
    report(root)
    run(root, "git", "commit", "--quiet", "--all", "--message", "second")
    return root


@pytest.mark.usefixtures("all_samples")
def test_scores_stand_side_by_side_with_their_p(tree):
    output = compare(tree, "tiny", "small")
    scores = [read_json(tree / run.results_folder / SCORES_FILE)["first"] for run in (TINY, SMALL)]
    labels = {"bleu": "BLEU", "chrf2": "chrF2", "chrf2pp": "chrF2++", "ter": "TER"}
    for metric, label in labels.items():
        first, second = (value_of(each, metric) for each in scores)
        cells = [label, f"{first:.1f}", f"{second:.1f}", f"{second - first:+.1f}"]
        (row,) = [line for line in lines(output) if line[1:3] == ["first", label]]
        assert row[2:6] == cells
    references = list(read_lines(tree / f"data/split/news-en-de/{TEST}.de"))
    texts = {
        run.system: list(read_lines(tree / run.results_folder / f"hypotheses/{TEST}.de"))
        for run in (TINY, SMALL)
    }
    p = paired_tests(texts, references, "de")["small"]["bleu"].bootstrap
    assert bleu_row(output)[6] == f"{p:.3f}" + (" n.s." if p >= 0.05 else "")
    assert "the same: settings\n" in output


def test_settings_that_differ(copy):
    params = (copy / "params.yaml").read_text("utf-8")
    head, small = params.split("  small:")
    small = small.replace("updates: 10", "updates: 20").replace("d_ff: 64", "d_ff: 128")
    (copy / "params.yaml").write_text(f"{head}  small:{small}", encoding="utf-8")
    assert "was made with another params.yaml" in compare(copy, "tiny", "small", status=1)
    trees.write_run(copy, trees.load_settings(copy / "params.yaml"), SMALL, errors=0.15)
    report(copy)
    found = lines(compare(copy, "tiny", "small"))
    assert ["model.d_ff", "64", "128"] in found
    assert ["train.max_updates", "10", "20"] in found


def test_several_seeds_are_paired(tmp_path):
    settings = trees.settings_in(tmp_path, corpora={"news-en-de": ("first",)}, seeds=(1, 2, 3))
    trees.write_all(tmp_path, settings)
    report(tmp_path)
    row = bleu_row(compare(tmp_path, "tiny", "small"))
    scores: list[list[Any]] = [
        [
            value_of(
                read_json(tmp_path / Run(system, "news-en-de", seed).results_folder / SCORES_FILE)[
                    "first"
                ],
                "bleu",
            )
            for seed in (1, 2, 3)
        ]
        for system in ("tiny", "small")
    ]
    p = ttest_rel(*scores).pvalue
    assert re.fullmatch(r"\d+\.\d ± \d+\.\d", row[3])
    assert row[6] == f"{p:.3f}" + (" n.s." if p >= 0.05 else "")
    records = frame.load(tmp_path)
    sides = [
        ReportedSystem(system, None, "", replace(settings, seeds=seeds), records, False)
        for system, seeds in (("tiny", (1, 2, 3)), ("small", (3, 1, 2)))
    ]
    both = [next(iter(side.scores((3, 1, 2)).values())).runs.seed for side in sides]
    assert [*both[0]] == [*both[1]] == [3, 1, 2]  # whatever the order of a report


def first_set(output):
    """What is printed of the sentences of the first test set."""
    return output.partition("test set first\n")[2].partition("test set second\n")[0]


def test_the_most_changed_sentences_come_first_and_in_order(tree):
    output = compare(tree, "tiny", "small", "--corpus", "news-en-de")
    assert "\ntiny and small on news-en-de, seed 1, test set first\n" in output
    # control characters do not reach the terminal
    assert "[31m" in output and "worse" in output
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", output)
    better, worse = first_set(output).split("Most improved")[1].split("Most worsened")
    assert re.findall(r"^line (\d+):", better, re.M) == ["4", "9", "10", "21"]
    assert re.findall(r"^line (\d+):", worse, re.M) == ["31"]
    assert "line 4: +100.0, from 0.0 to 100.0" in better
    split = tree / "data" / "split" / "news-en-de"
    source, reference = (list(read_lines(split / f"{TEST}.{side}"))[3] for side in ("en", "de"))
    block = better.partition("line 4")[2].splitlines()[1:5]
    assert [line.split(maxsplit=1) for line in block] == [
        ["source", source],
        ["reference", reference],
        ["tiny", "nothing"],
        ["small", reference],
    ]
    few = first_set(compare(tree, "small", "tiny", "--corpus", "news-en-de", "--sentences", "2"))
    assert re.findall(r"^line (\d+):", few, re.M) == ["31", "4", "9"]


def test_sentences_are_scored_in_the_language_of_the_test_set(copy):
    """The directions of a corpus have their own, which the facts of the results name."""
    path = copy / RESULTS
    path.write_text(path.read_text("utf-8").replace('"target": "de"', '"target": "zh"'), "utf-8")
    output = first_set(compare(copy, "tiny", "small", "--corpus", "news-en-de"))
    files = [copy / f"data/split/news-en-de/{TEST}.de"]
    files += [copy / run.results_folder / f"hypotheses/{TEST}.de" for run in (TINY, SMALL)]
    references, first, second = (list(read_lines(file)) for file in files)
    printed = re.findall(r"(?m)^line (\d+): .* from (.*) to (.*)$", output)
    by_words, by_characters = (
        [(n, f"{of.first[int(n)]:.1f}", f"{of.second[int(n)]:.1f}") for n, *_ in printed]
        for of in (
            sentence_bleu_changes(first, second, references, language) for language in ("de", "zh")
        )
    )
    assert printed == by_characters != by_words


def test_systems_may_be_called_as_the_lines_are(tmp_path):
    names = "reference", "source"
    trees.write_all(tmp_path, trees.settings_in(tmp_path, names, {"news-en-de": ("first",)}))
    report(tmp_path)
    output = compare(tmp_path, *names, "--corpus", "news-en-de")
    labels = [line.split()[0] for line in output.partition("\nline ")[2].split("\n")[1:5]]
    assert labels == ["source", "reference", "reference", "source"]


def test_a_revision_and_what_is_here(repository):
    output = compare(repository, "tiny@HEAD~1", "tiny")
    assert output.startswith("tiny@HEAD~1 and tiny\n")
    assert ["decode.beam", "2", "5"] in lines(output)
    # the lines of another revision are not read: one seed has no p, and so no column of it
    assert len(bleu_row(output)) == 6
    assert run(repository, "git", "status", "--porcelain", "--untracked-files=no") == ""
    nothing = "small@HEAD and small: nothing differs: settings, translations, scores\n"
    assert compare(repository, "small@HEAD", "small") == nothing
    results = repository / RESULTS
    text = results.read_text()
    (made, *_) = re.findall(r'"system": "small",.*"hypotheses_sha256": "(\w+)"', text)
    results.write_text(text.replace(made, "0" * 64))  # other translations of the same rounded score
    assert "\nScores\n" in compare(repository, "small@HEAD", "small")
    results.write_text(text)
    of_tiny = compare(repository, "tiny@HEAD@{0}", "tiny@HEAD~1")
    assert of_tiny.startswith("tiny@HEAD@{0} and tiny@HEAD~1\n")
    # a revision alone is of the other side's system, on both sides of all systems
    assert compare(repository, "tiny", "@HEAD~1") == compare(repository, "tiny", "tiny@HEAD~1")
    found = re.findall(r"^\w+@main~1 and \w+", compare(repository, "@main~1", "@"), re.M)
    assert found == ["tiny@main~1 and tiny", "small@main~1 and small"]


@pytest.fixture
def side(tmp_path):
    """A function: one side of a comparison, of a system with a score for each seed."""
    settings = trees.settings_in(tmp_path, corpora={"news-en-de": ("first",)})

    def side(scores, revision="", **facts):
        records = [
            record("tiny", "news-en-de", "first", bleu, seed=seed, **facts)
            for seed, bleu in scores.items()
        ]
        of_seeds = replace(settings, seeds=tuple(scores))
        return ReportedSystem(
            "tiny", None, revision, of_seeds, made_by_hand(*records), on_different_corpora=False
        )

    return side


@pytest.mark.parametrize("references", ["4e" * 32, "99" * 32], ids=["same", "other"])
def test_revisions_with_other_references_have_no_p(side, references):
    first = side({1: 30.0, 2: 31.0, 3: 32.0}, revision="main")
    second = side({1: 31.0, 2: 31.5, 3: 34.0}, references_sha256=references)
    (before,) = first.scores((1, 2, 3)).values()
    (after,) = second.scores((1, 2, 3)).values()
    p = p_values_by_metric(first, second, ScoresPair(before, after))["bleu"]
    if references == "4e" * 32:
        assert p == pytest.approx(ttest_rel([30, 31, 32], [31, 31.5, 34]).pvalue)
    else:
        assert p is None


def test_seeds_that_one_side_lacks_are_left_out(side):
    one, both = side({1: 30.0}, revision="main"), side({2: 90.0, 1: 31.0})
    *_, scores, note, _ = compare_systems(one, both, sentences=0)
    (row,) = [texts for texts in map(scores.texts, scores.rows) if texts[2] == "BLEU"]
    assert row[3:6] == ["30.0", "31.0", "+1.0"]
    assert note.startswith("Seeds: 1. p: ")
    with pytest.raises(UserError, match=r"^tiny@main and tiny: have no seed in common,"):
        list(compare_systems(one, side({2: 90.0}), sentences=0))


@pytest.mark.parametrize(
    ("p", "target", "agree"),
    [(0.04, "de", "53%"), (0.06, "de", "–"), (0.04, "sym", "–"), (None, "de", "–")],
)
def test_people_agree_on_significant_differences_between_languages(side, p, target, agree):
    """88.333 / (1 + e^(-0.96639 * 0.4)) = 52.6, by Kocmi et al. (2024)."""
    (before,) = side({1: 20.0}, target=target).scores((1,)).values()
    (after,) = side({1: 20.4}, target=target).scores((1,)).values()
    assert score_texts("bleu", ScoresPair(before, after), p)[-1] == agree


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("tinny", "small", "no systems entry 'tinny'"),
        ("HEAD", "small", "no systems entry 'HEAD'"),
        ("tiny", "smal@HEAD~1", "no systems entry 'smal'"),
        ("tiny", "tiny@nowhere", "nowhere: no Git revision, DVC experiment, file or folder"),
        ("tiny", "tiny", "tiny: cannot be compared with itself. Name another system or revision"),
        ("@", "@", "both arguments are @, the report of the working tree. Name a revision"),
        (",own", "tiny", "',own': names no system. Write SYSTEM, SYSTEM@REVISION or @REVISION"),
    ],
)
def test_mistakes_are_told_in_one_line(repository, first, second, message):
    printed = compare(repository, first, second, status=1)
    assert printed.count("\n") == 1 and message in printed
    unknown = compare(repository, "tiny", "small", "--corpus", "new", status=1)
    assert "no corpora entry 'new'" in unknown


def test_a_revision_of_another_version_is_told_by_its_name(repository, tmp_path):
    root = shutil.copytree(repository.parent, tmp_path / "copy") / "project"
    resolved = root / "reports" / "resolved.json"
    resolved.write_text(resolved.read_text("utf-8").replace('"clip_norm"', '"clip"'), "utf-8")
    run(root, "git", "commit", "--quiet", "--all", "--message", "third")
    printed = compare(root, "tiny@HEAD", "tiny", status=1)
    assert printed.startswith(
        "bleuprint: error: HEAD: reports/resolved.json is damaged: field runs."
    )
    resolved.write_text(resolved.read_text("utf-8").replace('"clip"', '"clip_norm"'), "utf-8")
    settings = resolved.read_text("utf-8")
    resolved.write_text(settings.replace('"runs": {', '"cells": {'), "utf-8")
    run(root, "git", "commit", "--quiet", "--all", "--message", "of 1.0")
    assert compare(root, "tiny@HEAD", "tiny", status=1) == (
        "bleuprint: error: HEAD: reports/resolved.json: a result of bleuprint 1.0, with the key "
        "cells instead of runs; run its experiment again with this version\n"
    )
    resolved.write_text(settings, "utf-8")
    settings = resolved.read_text("utf-8")
    resolved.write_text(settings.replace('"beam": 5', '"beam": 1', 1), "utf-8")  # not yet run
    assert settings != resolved.read_text("utf-8")
    run(root, "git", "commit", "--quiet", "--all", "--message", "fourth")
    assert compare(root, "tiny@HEAD", "tiny@HEAD~3", status=1) == (
        "bleuprint: error: HEAD: reports/results.json: was made with another params.yaml; name a "
        "revision whose results are of its reports/resolved.json\n"
    )
    run(root, "git", "rm", "--quiet", "reports/resolved.json")
    run(root, "git", "commit", "--quiet", "--all", "--message", "fifth")
    printed = compare(root, "tiny@HEAD", "tiny", status=1)
    assert printed.startswith("bleuprint: error: HEAD: reports/resolved.json: no such file")


@pytest.mark.parametrize("language", ["de", "zh"])
def test_sentence_scores_equal_the_command_line(tmp_path, language):
    # the last lines are shorter than the longest n-grams
    ends = ["Ja", "so gut"], ["Ja", "gut so"], ["Nein", "so gut"]
    made = zip(text(language), ends, strict=True)
    references, good, worse = ([*lines, *end] for lines, end in made)
    found = sentence_bleu_changes(good, worse, references, language)
    assert list(found.index) == list(range(1, 63))
    for name, lines in (("references", references), ("good", good), ("worse", worse)):
        trees.write_lines(tmp_path / name, lines)
    for name, ours in (("good", found["first"]), ("worse", found["second"])):
        command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "references")]
        command += ["-i", str(tmp_path / name), "-l", f"en-{language}", "-sl", "-w", "6"]
        done = subprocess.run(command, capture_output=True, check=True, text=True)
        assert re.findall(r"eff:yes\S* = (\d+\.\d+) ", done.stdout) == [f"{s:.6f}" for s in ours]
        assert len(set(ours)) > 1
