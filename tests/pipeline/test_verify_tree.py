"""`bleuprint verify` of the working tree: what was edited after it was computed is named."""

import json
import shutil

from bleuprint.pipeline import verify_tree
from bleuprint.report.same_results import Verdict


def problems(project):
    lines, verdict = verify_tree.lines(project.root)
    assert verdict == Verdict.DIFFERENT and len(lines) <= 10
    return lines


def test_edits_after_the_run_are_named(reproduced):
    lines, verdict = verify_tree.lines(reproduced.root)
    assert verdict == Verdict.SAME_BYTES and len(lines) == 1
    assert lines[0].startswith("the working tree belongs together: reports/results.json is what")

    (name,) = (reproduced.root / "results/tiny/own/1/hypotheses").glob("test.*.de")
    text = name.read_text()
    name.write_text(text.replace("\n", " x\n", 1))
    found = "\n".join(problems(reproduced))
    assert f"hypotheses/{name.name}: has changed since it was translated" in found
    assert "translate@tiny-own-1: results/tiny/own/1/hypotheses modified since it ran" in found
    name.write_text(text)

    table = reproduced.read("reports/table.md")
    reproduced.write("reports/table.md", table.replace("tiny", "huge"))
    assert problems(reproduced) == ["report: reports/table.md modified since it ran"]
    reproduced.write("reports/table.md", table)

    rows = json.loads(reproduced.read("reports/results.json"))
    computed = rows[0]["test_loss"]
    reproduced.write(
        "reports/results.json",
        reproduced.read("reports/results.json").replace(str(computed), "0.125", 1),
    )
    found = problems(reproduced)
    assert found[0].endswith(
        f"reports/results.json: test_loss 0.125 of tiny on own, seed 1, {rows[0]['test']}, "
        f"but results/ give {computed}"
    )
    assert found[1] == "report: reports/results.json modified since it ran"


def test_what_dvc_takes_for_up_to_date_is_named(reproduced):
    averaged = reproduced.root / "models/tiny/own/1/averaged"
    other = reproduced.root / "models/wide/own/1/averaged"
    kept = shutil.copytree(averaged, reproduced.root.parent / "kept")
    shutil.rmtree(averaged)
    shutil.copytree(other, averaged)
    reproduced.run("dvc", "commit", "--force", "--quiet")
    assert reproduced.changed() == set()
    (found,) = problems(reproduced)
    assert found.startswith(f"{averaged}/model.json: of another training than")
    assert found.endswith("run: dvc repro --force --single-item average@tiny-own-1")

    shutil.rmtree(averaged)
    shutil.copytree(kept, averaged)
    weights = averaged / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    reproduced.run("dvc", "commit", "--force", "--quiet")
    (found,) = problems(reproduced)
    assert found.startswith(f"{weights}: has changed since it was averaged")


def test_a_clone_without_outputs_and_an_edited_setting(reproduced):
    for name in ("data", "models", "results"):
        shutil.rmtree(reproduced.root / name)
    reproduced.edit("params.yaml", "label_smoothing: 0.1\n", "label_smoothing: 0.2\n")
    found = problems(reproduced)
    assert any(line.startswith("outputs of stages that are not here: ") for line in found)
    assert any(
        line.startswith("train@tiny-own-1: params.yaml: systems.tiny.train") for line in found
    )


def test_another_setting_is_named_from_a_revision(reproduced):
    reproduced.edit(
        "params.yaml", "      <<: *train\n", "      <<: *train\n      label_smoothing: 0.3\n"
    )
    reproduced.repro()
    output = reproduced.run("bleuprint", "verify", "HEAD", status=None)
    assert "here and HEAD: 1 results the same bytes" in output
    named = "  from train on: settings systems.wide.train.label_smoothing 0.3 and 0.1\n"
    assert named in output
    reproduced.run("git", "checkout", "--quiet", "params.yaml")
    reproduced.repro()
    assert "2 results the same bytes, 0 diff" in reproduced.run("bleuprint", "verify", "HEAD")
