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


def test_outputs_of_other_settings_are_older_than_all_inputs(stages, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recorded = {name: stage.parameters for name, stage in stages.items()}
    recorded |= {"filter@own": {"code.filter": "of then"}, "download@own": {"code.download": "too"}}
    graph = [replace(stage, recorded=recorded[name]) for name, stage in stages.items()]
    graph = [replace(each, dependencies=()) if "download" in each.name else each for each in graph]
    for path in (path for stage in graph for path in map(Path, stage.outputs)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def outdated():
        return {stage.name for stage in graph if Path(stage.outputs[0]).stat().st_mtime == 1}

    outdate_others(graph, dry=True)
    assert outdated() == {"filter@own"}
    outdate_others(graph, dry=False)
    (given, ledger) = stages["download@own"].outputs
    assert not Path(given).exists() and not Path(ledger).exists()
    Path(given).touch()
    Path("data/filter/own").touch()
    for name in ("filter@own", "download@own"):  # which Snakemake has run since
        stages[name].mark.parent.mkdir(parents=True, exist_ok=True)
        stages[name].mark.touch()
    outdate_others(graph, dry=False)
    assert outdated() == set() and Path(given).exists()
