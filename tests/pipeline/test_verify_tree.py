"""`bleuprint verify` of the working tree: what was edited after it was computed is named.

All tests share one project, in which they put back what they changed.
"""

import json
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from bleuprint.config.experiment import load
from bleuprint.pipeline import verify_again, verify_tree
from bleuprint.pipeline.dvc_lock import open_repo
from bleuprint.pipeline.first_difference import is_account
from bleuprint.pipeline.verify_chain import not_computed
from bleuprint.report.same_results import Verdict
from bleuprint.runtime.files import sha256_of
from bleuprint.runtime.schema import load_yaml

CELL = "results/tiny/own/1"
AVERAGED = "models/tiny/own/1/averaged"
CHANGED = (
    *("results", "models", "data", "reports", "inputs"),
    *("params.yaml", "dvc.lock", ".dvc/cache/runs"),
)


@pytest.fixture(scope="module")
def shared(by_dvc, tmp_path_factory):
    return by_dvc.copy(tmp_path_factory.mktemp("verify") / "project")


@pytest.fixture
def project(shared, by_dvc):
    """The shared project, which is as it was after the test."""
    yield shared
    for name in CHANGED:
        path, original = shared.root / name, by_dvc.root / name
        if original.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(original, path)
        else:
            shutil.copy2(original, path)


@contextmanager
def json_of(project, path):
    """The content of a JSON file, to be edited."""
    yield (content := json.loads(project.read(path)))
    project.write(path, json.dumps(content))


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def translations(project):
    (path,) = (project.root / CELL / "hypotheses").glob("test.*.de")
    replace(path, "\n", " x\n")


def translations_and_their_sum(project):
    (path,) = (project.root / CELL / "hypotheses").glob("test.*.de")
    (references,) = (project.root / "data/split/own").glob("test.*.de")
    shutil.copyfile(references, path)
    with json_of(project, f"{CELL}/translation.json") as record:
        record["hypotheses"][path.name] = sha256_of(path)


def references(project):
    (path,) = (project.root / "data/split/own").glob("test.*.de")
    replace(path, "\n", " X\n")


def interval(project):
    with json_of(project, f"{CELL}/scores.json") as scores:
        next(iter(scores.values()))["bleu"]["low"] += 0.5


def signature(project):
    replace(project.root / CELL / "scores.json", "tok:13a", "tok:intl")


def versions(project):
    with json_of(project, f"{CELL}/scores.json") as scores:
        of = next(iter(scores.values()))
        of["scored_with"] = ", ".join(
            "sacrebleu 1.5.1" if each.startswith("sacrebleu") else each
            for each in of["scored_with"].split(", ")
        )


def without_faults(project):
    with json_of(project, f"{CELL}/scores.json") as scores:
        del next(iter(scores.values()))["faults"]


def results(project):
    with json_of(project, "reports/results.json") as rows:
        rows[0]["test_loss"] = 0.125


def average_of_another(project):
    shutil.rmtree(project.root / AVERAGED)
    shutil.copytree(project.root / "models/wide/own/1/averaged", project.root / AVERAGED)


def average_with_a_flipped_byte(project):
    weights = project.root / AVERAGED / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")


def older_checkpoint(project):
    weights = project.root / AVERAGED / "model.safetensors"
    checkpoints = project.root / "models/tiny/own/1/checkpoints"
    shutil.copyfile(min(checkpoints.glob("*.safetensors")), weights)
    with json_of(project, f"{AVERAGED}/model.json") as described:
        described["averaged"]["sha256"] = sha256_of(weights)


def other_average_translated(project):
    with json_of(project, f"{CELL}/translation.json") as record:
        record["averaged"]["updates"] = [30]


def other_data(project):
    replace(project.root / "data/split/own/valid.de", "\n", " X\n")


def test_set_in_the_training_text(project):
    texts = project.root / "data/split/own"
    for language in ("en", "de"):
        (test,) = texts.glob(f"test.*.{language}")
        with (texts / f"train.{language}").open("a") as train:
            train.write(test.read_text().upper())


def preparation(project):
    project.edit("params.yaml", "max: 3.0", "max: 2.0")


def parameters(project):
    with json_of(project, f"{CELL}/training.json") as training:
        training["parameters"] //= 10


def tokens(project):
    with json_of(project, f"{CELL}/training.json") as training:
        training["target_tokens"] //= 10


def dropped(project):
    with json_of(project, "data/ledgers/own/filter.json") as ledger:
        ledger["sets"]["train"]["dropped"]["length"] = 900


def kept(project):
    with json_of(project, "data/ledgers/own/dedup.json") as ledger:
        for side in ("pairs_in", "pairs_out"):
            ledger["sets"]["train"][side] += 1


def table(project):
    replace(project.root / "reports/table.md", " tiny ", " good ")


def metrics(project):
    replace(project.root / "reports/metrics.json", "{", "{ ")


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (table, "reports/table.md: not what the report writes of results/; run: dvc repro --force"),
        (metrics, "reports/metrics.json: not what the report writes"),
        (translations, "has changed since system tiny, corpus own, seed 1 was score"),
        (translations_and_their_sum, "has changed since system tiny, corpus own, seed 1 was score"),
        (references, "test.held-out.de: has changed since system tiny, corpus own, "),
        (interval, "scores.json: bleu.low "),
        (
            signature,
            "scores.json: bleu.signature nrefs:1|",
        ),
        (versions, f"{CELL}/scores.json: scored with sacrebleu 1.5.1, but installed: sacrebleu "),
        (
            without_faults,
            f"{CELL}/scores.json: no faults; run: dvc repro --force --single-item score",
        ),
        (results, "reports/results.json: test_loss 0.125 of tiny on own, seed 1, "),
        (average_of_another, f"{AVERAGED}/model.json: of another training than"),
        (average_with_a_flipped_byte, "model.safetensors: has changed since it was averaged"),
        (older_checkpoint, f"{AVERAGED}/model.json: is not the average of the checkpoints"),
        (
            other_average_translated,
            "translated by an average of the checkpoints [30], but ",
        ),
        (parameters, f"{CELL}/training.json: 1,993 parameters, but "),
        (tokens, " target tokens, but curves.json has "),
        (dropped, "data/ledgers/own/filter.json: train: "),
        (kept, "data/ledgers/own/dedup.json: train: "),
        (other_data, f"{CELL}/training.json: trained on other data than"),
        (
            test_set_in_the_training_text,
            "train.en: 15 pairs have a sentence of a validation or test",
        ),
        (preparation, "data/ledgers/own/filter.json: filter ran with other settings than params"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_edit_is_named_even_if_dvc_commits_it(project, edit, named):
    edit(project)
    found = list(verify_tree.beyond_dvc(load(project.root / "params.yaml"), project.root))
    assert any(named in line for line in found), found


def test_what_dvc_finds_is_named(project):
    project.write("inputs/unnamed.txt", "of no corpus\n")
    lines, verdict = verify_tree.lines(project.root)
    assert verdict == Verdict.SAME_BYTES and len(lines) == 1, lines
    assert lines[0].startswith("the working tree belongs together: reports/results.json is what")
    assert "not known" not in lines[0]
    drawn = re.search(r"(\d+) of (\d+) sentences drawn at random translated again", lines[0])
    assert drawn and drawn[1] == drawn[2] != "0"
    assert "index.html" not in lines[0]

    translations(project)
    project.write("inputs/a.en", project.read("inputs/a.en") + "\n")
    project.edit("params.yaml", "label_smoothing: 0.1\n", "label_smoothing: 0.2\n")
    project.write("reports/table.md", project.read("reports/table.md").replace("tiny", "huge"))
    shutil.rmtree(project.root / "data/bpe")
    lines, verdict = verify_tree.lines(project.root)
    assert verdict == Verdict.DIFFERENT and len(lines) <= 10
    text = "\n".join(lines)
    assert "outputs of stages that are not here: 1; run: dvc pull" in text
    for named in (
        f"translate@tiny-own-1: {CELL}/hypotheses modified since it ran",
        "report: reports/table.md modified since it ran",
        "train@tiny-own-1: params.yaml: systems.tiny.train",
        "download@own: its files in inputs/ have changed",
    ):
        assert named in text


def test_translations_that_no_model_made_are_named(project):
    translations_and_their_sum(project)
    settings = load(project.root / "params.yaml")
    (problem,), text = verify_again.translations(settings, project.root)
    assert problem.startswith(
        f"{project.root / CELL}/hypotheses: of 15 sentences drawn at random, "
    )
    assert problem.endswith("run: dvc repro --force --single-item translate@tiny-own-1")
    shutil.rmtree(project.root / "models")
    problems, text = verify_again.translations(settings, project.root)
    assert not problems and text.startswith("but no sentence was translated again")


def test_what_cannot_be_known_is_said(project):
    shutil.rmtree(project.root / ".dvc/cache/runs")  # as in a clone after `dvc pull`
    project.write("reports/index.html", project.read("reports/index.html").replace("tiny", "huge"))
    lines, verdict = verify_tree.lines(project.root)
    names = load_yaml(project.root / "dvc.lock")["stages"]
    stages = len(names.keys() - {"inputs", "overrides", "report"})
    assert verdict == Verdict.SAME_BYTES
    assert f"but that {stages} of {stages} stages computed their outputs is not known" in lines[0]
    assert "but reports/index.html is edited, or older than what was measured" in lines[0]

    (project.root / "dvc.lock").unlink()
    lines, verdict = verify_tree.lines(project.root)
    assert verdict == Verdict.DIFFERENT
    assert "dvc.lock: no such file: what computed results/ is not known" in lines[0]


def test_a_commit_of_outputs_that_were_not_computed_is_named_by_stage(project, monkeypatch):
    root = project.root
    monkeypatch.chdir(root)
    before = load_yaml(root / "dvc.lock")["stages"]
    assert list(not_computed(before, root)) == []
    # of a file, of folders, with accounts beside; the last first: its inputs are still the same
    edited = [f"{kind}@tiny-own-1" for kind in ("score", "translate", "train")] + ["filter@own"]
    with open_repo(root) as repo:
        for name in edited:
            paths = [out["path"] for out in before[name]["outs"]]
            out = root / next(path for path in paths if not is_account(path))
            file = out if out.is_file() else max(p for p in out.rglob("*") if p.is_file())
            file.write_bytes(file.read_bytes() + b"\n")
            repo.commit(name, force=True)
    found = list(not_computed(load_yaml(root / "dvc.lock")["stages"], root))
    assert {line.partition(":")[0] for line in found} == set(edited)
    assert all("not as it was computed first, from the same inputs" in line for line in found)
