"""The rules of the Snakefile against the stages that DVC resolves from dvc.yaml."""

import re

import pytest

from bleuprint.pipeline import snakemake_run
from bleuprint.pipeline.rules import make_rules


@pytest.fixture(scope="module")
def rules(project, stages):
    return [*make_rules(stages.values(), shards=3, root=project.root)]


def test_each_stage_is_a_job_of_one_rule_with_its_outputs(rules, stages):
    found = {}
    for rule in rules:
        for stage in rule.stages.values():
            pattern = rule.outputs[0]
            for name, values in rule.constraints.items():
                pattern = pattern.replace(f"{{{name}}}", f"(?P<{name}>{values})", 1)
            wildcards = re.fullmatch(pattern, stage.outputs[0]).groupdict()
            assert rule.stage(wildcards) is stage
            outputs = [*rule.folders, *rule.files, *rule.git_outputs]
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


@pytest.mark.parametrize(
    ("changes", "runs"),
    [
        ([], False),
        ([{"changed deps": {"data/raw/own": "deleted"}}], False),  # its maker runs first
        ([{"changed outs": {"data/clean/own": "deleted"}}], False),  # Snakemake finds it missing
        ([{"changed outs": {"data/clean/own": "not in cache"}}], False),  # it is here
        ([{"changed outs": {"data/clean/own": "modified"}}], True),
        ([{"changed deps": {"data/raw/own": "modified"}}], True),
        ([{"changed deps": {"reports/resolved.json": {"code.clean": "modified"}}}], True),
        ([{"changed deps": {"a": "deleted"}}, {"changed outs": {"b": "modified"}}], True),
        (["changed command"], True),
    ],
)
def test_a_stage_is_a_job_if_dvc_finds_more_than_a_missing_file(changes, runs):
    assert snakemake_run._has_changed(changes) == runs


def test_the_stages_after_a_changed_one_run_as_well(stages):
    """As `dvc dag` draws them, by hand: through all levels, and in no other branch."""
    jobs = snakemake_run.Jobs(None, [*stages.values()], None)
    found = jobs._with_later_stages({"average@tiny-own-1"})
    assert found == {"average@tiny-own-1", "translate@tiny-own-1", "score@tiny-own-1", "report"}
    assert jobs._with_later_stages({"score@wide-own-1"}) == {"score@wide-own-1", "report"}
