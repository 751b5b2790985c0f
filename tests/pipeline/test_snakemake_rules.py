"""The rules of the Snakefile against the stages that DVC resolves from dvc.yaml."""

import re

import pytest

from bleuprint.pipeline import snakemake_run
from bleuprint.pipeline.rules import make_rules


@pytest.fixture(scope="module")
def rules(project, stages):
    """Return the rules of Snakemake; sharded ones divide a corpus into three parts."""
    return list(make_rules(stages.values(), shards=3, root=project.root))


def wildcards_of(rule, stage):
    """Return the values of a rule's wildcards for a stage, as Snakemake finds them.

    Snakemake matches the rule's output, such as `models/{system}/{corpus}/{seed}/averaged`, with
    the stage's one, such as `models/tiny/own/1/averaged`.
    """
    pattern = rule.outputs[0]
    for name, possible_values in rule.constraints.items():
        pattern = pattern.replace(f"{{{name}}}", f"(?P<{name}>{possible_values})", 1)
    return re.fullmatch(pattern, stage.outputs[0]).groupdict()


def test_each_stage_is_a_job_of_exactly_one_rule(rules, stages):
    names = []
    for rule in rules:
        for stage in rule.stages.values():
            names.append(stage.name)
            assert stage is stages[stage.name]

    assert sorted(names) == sorted(stages)


def test_the_wildcards_of_a_job_lead_to_its_stage(rules):
    for rule in rules:
        for stage in rule.stages.values():
            assert rule.stage(wildcards_of(rule, stage)) is stage


def test_a_job_has_the_outputs_of_its_stage(rules):
    for rule in rules:
        outputs = [*rule.folders, *rule.files, *rule.git_outputs]
        for stage in rule.stages.values():
            wildcards = wildcards_of(rule, stage)
            job_outputs = {path.format(**wildcards) for path in outputs}
            assert job_outputs == set(stage.outputs)


def test_log_and_message_of_a_job_name_its_stage(rules):
    for rule in rules:
        # Snakemake writes the wildcard {system} of a path as {wildcards.system} in a message.
        message = re.sub(r"{wildcards\.(\w+)}", r"{\1}", rule.message)
        for stage in rule.stages.values():
            wildcards = wildcards_of(rule, stage)
            assert rule.log.format(**wildcards) == f"work/snakemake/logs/{stage.name}.log"
            assert message.format(**wildcards) == stage.name


def test_the_command_of_a_sharded_job_joins_the_shards(rules):
    rule_by_name = {rule.name: rule for rule in rules}
    clean = rule_by_name["clean"]
    wildcards = {"key": "own"}

    assert clean.command(wildcards).startswith(f"{clean.shard_command(wildcards)} --ga")
    assert clean.shard("2-of-3") == "work/shards/clean/{key}/2-of-3"


def test_the_command_of_a_job_without_shards_joins_none(rules):
    rule_by_name = {rule.name: rule for rule in rules}

    assert " --gather " not in rule_by_name["split"].command({"key": "own"})


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([], id="nothing"),
        # The stage that writes it runs first.
        pytest.param([{"changed deps": {"data/raw/own": "deleted"}}], id="missing input"),
        # Snakemake itself finds that it is missing.
        pytest.param([{"changed outs": {"data/clean/own": "deleted"}}], id="missing output"),
        pytest.param(
            [{"changed outs": {"data/clean/own": "not in cache"}}],
            id="output that is only in the project, not in the cache",
        ),
    ],
)
def test_a_stage_with_only_missing_files_has_not_changed(changes):
    """The changes are those that `dvc status` reports for the stage."""
    assert not snakemake_run._has_changed(changes)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([{"changed outs": {"data/clean/own": "modified"}}], id="output"),
        pytest.param([{"changed deps": {"data/raw/own": "modified"}}], id="input"),
        pytest.param(
            [{"changed deps": {"reports/resolved.json": {"code.clean": "modified"}}}], id="code"
        ),
        pytest.param(
            [{"changed deps": {"a": "deleted"}}, {"changed outs": {"b": "modified"}}],
            id="output, with a missing input",
        ),
        pytest.param(["changed command"], id="command"),
    ],
)
def test_a_stage_with_a_modified_file_or_command_has_changed(changes):
    """The changes are those that `dvc status` reports for the stage."""
    assert snakemake_run._has_changed(changes)


@pytest.mark.parametrize(
    ("changed_stage", "later_stages"),
    [
        ("average@tiny-own-1", {"translate@tiny-own-1", "score@tiny-own-1", "report"}),
        ("score@wide-own-1", {"report"}),
    ],
)
def test_the_stages_after_a_changed_one_run_as_well(stages, changed_stage, later_stages):
    """They are the ones that `dvc dag` draws after it: on all levels, and in no other branch."""
    jobs = snakemake_run.Jobs(None, list(stages.values()), None)

    assert jobs._with_later_stages({changed_stage}) == {changed_stage} | later_stages
