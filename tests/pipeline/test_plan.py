"""What `dvc repro` would run, by `bleuprint plan`, against what it does run."""

import csv
import re
import shutil

import pytest

import micro
from bleuprint.pipeline.plan import planned_stages
from bleuprint.runtime.errors import UserError


def planned(project):
    return {each.stage.name: each.why for each in planned_stages(project.root)}


def test_nothing_is_planned_when_all_is_up_to_date_or_in_the_cache(reproduced):
    assert planned(reproduced) == {}
    shutil.rmtree(reproduced.root / "models")
    (reproduced.root / "results/tiny/own/1/scores.json").unlink()
    assert reproduced.changed()
    assert planned(reproduced) == {}
    assert reproduced.repro() == []


def test_a_clone_without_the_cache_would_run_all(by_dvc, tmp_path):
    by_dvc.run("git", "clone", "--quiet", str(by_dvc.root), str(tmp_path / "clone"))
    plan = planned(micro.Project(tmp_path / "clone"))
    missing = plan["clean@own"]
    assert re.fullmatch("data/.*own.* is neither here nor in DVC's cache", missing)
    assert len(plan) == 22 and "overrides" not in plan  # whose output is in git
    (tmp_path / "clone/dvc.lock").unlink()
    assert set(planned(micro.Project(tmp_path / "clone")).values()) == {"has not run yet"}


def test_a_file_in_inputs_concerns_the_corpora_that_name_it(reproduced):
    reproduced.write("inputs/unnamed.txt", "x\n")
    assert planned(reproduced) == {"inputs": "inputs has changed"}
    before = reproduced.read("reports/inputs.json")
    assert reproduced.repro() == ["inputs"]
    assert reproduced.read("reports/inputs.json") == before

    reproduced.write("inputs/a.en", reproduced.read("inputs/a.en") + "\n")
    reproduced.write("inputs/a.de", reproduced.read("inputs/a.de") + "\n")
    assert planned(reproduced)["download@own"] == "its files in inputs/ have changed"
    assert reproduced.read("reports/inputs.json") == before  # as it was
    output = reproduced.run("dvc", "repro", "download@own")
    assert micro.ran(output) == ["inputs", "download@own"]


def test_an_edit_of_code_or_command_is_named(reproduced):
    reproduced.write("src/bleuprint/model/extra.py", "")
    reproduced.edit("dvc.yaml", "python stages/learn_bpe.py", "python -X dev stages/learn_bpe.py")
    plan = planned(reproduced)
    assert plan["train@tiny-own-1"] == "src/bleuprint/model has changed"
    assert plan["learn_bpe@own"] == "its command has changed"
    assert plan["binarize@own"] == "after learn_bpe@own"
    assert "tokenize@own" not in plan


@pytest.mark.slow
def test_what_is_planned_runs_and_its_forecast_stands_beside_what_it_took(reproduced):
    reproduced.edit("params.yaml", "      label_smoothing: 0.1\n", "      label_smoothing: 0\n")
    reproduced.edit(
        "params.yaml", "      <<: *train\n", "      <<: *train\n      label_smoothing: 0.1\n"
    )
    output = reproduced.run("bleuprint", "plan")
    assert re.search(
        r"^train@tiny-own-1 +params.yaml: systems.tiny.train.*: 60 updates, \d\.\de\d+ FLOPs, "
        r"0:00:\d\d$",
        output,
        re.MULTILINE,
    )
    assert re.search(r"^average@tiny-own-1 +after train@tiny-own-1$", output, re.MULTILINE)
    assert "wide" not in output
    assert re.search(r"\ntrainings: 0:00:\d\d one after the other on .* with \d+ threads, ", output)
    assert "other stages that ran here before (6): 0:0" in output
    names = set(planned(reproduced))
    assert set(reproduced.repro()) == names | {"overrides"}
    with (reproduced.root / "reports/costs.csv").open() as file:
        forecasts = {row["system"]: row["forecast_seconds"] for row in csv.DictReader(file)}
    assert float(forecasts["tiny"]) > 0 and forecasts["wide"] == ""
    assert "Forecast" in reproduced.read("reports/index.html")
    again = reproduced.run("bleuprint", "plan")
    assert again == "all stages are up to date: dvc repro would run none\n"


def test_an_override_plans_its_cell_alone(reproduced):
    reproduced.edit(
        "params.yaml",
        "    decode: *decode\n",
        "    decode: *decode\n    corpora: {own: {decode: {<<: *decode, beam: 3}}}\n",
    )
    assert set(planned(reproduced)) == {
        "overrides",
        "translate@wide-own-1",
        "score@wide-own-1",
        "report",
    }
    overrides = reproduced.read("reports/overrides.json")
    assert "beam" not in overrides  # as it was


def test_a_conflict_of_a_merge_and_a_damaged_lock_are_one_clear_line(reproduced):
    lock = reproduced.read("dvc.lock")
    reproduced.write("dvc.lock", f"<<<<<<< HEAD\n{lock}=======\n{lock}>>>>>>> theirs\n")
    output = reproduced.run("bleuprint", "plan", status=1)
    assert output.startswith("bleuprint: error: dvc.lock: has both sides of a git merge; take one:")
    assert output.count("\n") == 1
    for damaged in ("", lock[: len(lock) // 2]):
        reproduced.write("dvc.lock", damaged)
        output = reproduced.run("bleuprint", "plan", status=1)
        assert output == (
            "bleuprint: error: dvc.lock: damaged, as by a killed process; bleuprint settle repairs "
            "it\n"
        )


def test_without_stages_nothing_is_up_to_date(tmp_path):
    (tmp_path / "params.yaml").write_text(micro.PARAMS)
    micro.Project(tmp_path).run("dvc", "init", "--no-scm", "--quiet")
    for text in ("", "stages: {}\n"):
        (tmp_path / "dvc.yaml").write_text(text)
        with pytest.raises(
            UserError, match=r"dvc\.yaml: no stages; git checkout dvc.yaml restores"
        ):
            planned_stages(tmp_path)
