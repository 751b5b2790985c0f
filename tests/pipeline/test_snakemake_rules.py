"""The rules of the Snakefile against the stages that DVC resolves from dvc.yaml."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bleuprint.pipeline.rules import rules as rules_of
from bleuprint.pipeline.snakemake_run import outdate_others


@pytest.fixture(scope="module")
def rules(project, stages):
    return [*rules_of(stages.values(), shards=3, root=project.root)]


def test_each_stage_is_a_job_of_one_rule_with_its_outputs(rules, stages):
    found = {}
    for rule in rules:
        for stage in rule.stages.values():
            pattern = rule.outputs[0]
            for name, values in rule.constraints.items():
                pattern = pattern.replace(f"{{{name}}}", f"(?P<{name}>{values})", 1)
            wildcards = re.fullmatch(pattern, stage.outputs[0]).groupdict()
            assert rule.stage(wildcards) is stage
            outputs = [*rule.folders, *rule.files, *rule.kept]
            assert {path.format(**wildcards) for path in outputs} == set(stage.outputs)
            # DVC's name of the stage, in messages and logs
            assert rule.log.format(**wildcards) == f"work/snakemake/logs/{stage.name}.log"
            assert re.sub(r"{wildcards\.(\w+)}", r"{\1}", rule.message).format(**wildcards) == (
                stage.name
            )
            found[stage.name] = stage
    assert found == stages


def test_a_sharded_rule_joins_its_shards_and_others_do_not(rules):
    by_name = {rule.name: rule for rule in rules}
    own = {"key": "own"}
    assert by_name["clean"].command(own).startswith(f"{by_name['clean'].shard_command(own)} --ga")
    assert by_name["clean"].shard("2-of-3") == "work/shards/clean/{key}/2-of-3"
    assert " --gather " not in by_name["split"].command(own)


def test_outputs_of_other_settings_are_older_than_all_inputs_or_missing(
    stages, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    stages = [replace(stages[name], recorded={"a": 1}) for name in ("filter@own", "download@own")]
    stages[1] = replace(stages[1], dependencies=())
    (filtered, _), (given, ledger) = [[*map(Path, stage.outputs)] for stage in stages]
    for path in (filtered, given / "a.en", ledger):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    outdate_others(stages)
    assert filtered.stat().st_mtime == 1
    assert (given / "a.en").exists() and not ledger.exists()
    filtered.touch()
    stages[0].mark.parent.mkdir(parents=True)
    stages[0].mark.touch()  # Snakemake has run it since
    outdate_others(stages)
    assert filtered.stat().st_mtime > 1
