"""The rules of the Snakefile against the stages that DVC resolves from dvc.yaml."""

import re
from types import SimpleNamespace

import pytest

from bleuprint.pipeline import snakemake_run
from bleuprint.pipeline.rules import make_rules
from bleuprint.runtime.errors import UserError


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


def jobs_on_a_cluster(stages):
    """Return what decides about the jobs of a Snakemake run on SLURM."""
    workflow = SimpleNamespace(
        is_main_process=True, local_exec=False, resource_settings=SimpleNamespace(cores=None)
    )
    return snakemake_run.Jobs(workflow, list(stages.values()), None)


def test_each_stage_belongs_to_exactly_one_rule_of_snakemake(rules, stages):
    """A rule such as `train` stands for the stages train@tiny-own-1, train@wide-own-1 and so on.

    A stage in two rules would make Snakemake refuse the Snakefile; a stage in none would never run.
    """
    names_in_rules = []
    for rule in rules:
        for stage in rule.stages.values():
            names_in_rules.append(stage.name)
            assert stage is stages[stage.name]

    assert sorted(names_in_rules) == sorted(stages)


def test_a_rule_finds_the_stage_of_a_job_by_its_wildcards(rules):
    """Wildcards are the variable parts of a path: {system: tiny, corpus: own, seed: 1}.

    Snakemake finds them by matching a rule's output with the path that it needs.
    """
    for rule in rules:
        for stage in rule.stages.values():
            wildcards = wildcards_of(rule, stage)

            assert rule.stage(wildcards) is stage


def test_a_job_of_snakemake_has_the_outputs_of_its_stage(rules):
    """A rule has outputs with wildcards, such as models/{system}/{corpus}/{seed}/averaged."""
    for rule in rules:
        rule_outputs = [*rule.folders, *rule.files, *rule.git_outputs]
        for stage in rule.stages.values():
            wildcards = wildcards_of(rule, stage)
            job_outputs = {path.format(**wildcards) for path in rule_outputs}

            assert job_outputs == set(stage.outputs)


def test_log_and_message_of_a_job_name_its_stage(rules):
    """When a job starts, Snakemake prints its message, such as train@tiny-own-1."""
    for rule in rules:
        # Snakemake writes the wildcard {system} of a path as {wildcards.system} in a message.
        message = re.sub(r"{wildcards\.(\w+)}", r"{\1}", rule.message)
        for stage in rule.stages.values():
            wildcards = wildcards_of(rule, stage)
            assert rule.log.format(**wildcards) == f"work/snakemake/logs/{stage.name}.log"
            assert message.format(**wildcards) == stage.name


def test_the_last_job_of_a_sharded_stage_joins_the_shards(rules):
    """The stage clean divides the corpus into three shards, each for a job of its own.

    The last job has the same command as the others and the option --gather.
    """
    rule_by_name = {rule.name: rule for rule in rules}
    clean = rule_by_name["clean"]
    wildcards = {"key": "own"}

    command_of_a_shard = clean.shard_command(wildcards)
    command_of_the_last_job = clean.command(wildcards)

    assert command_of_the_last_job.startswith(f"{command_of_a_shard} --ga")
    assert clean.shard("2-of-3") == "work/shards/clean/{key}/2-of-3"
    assert clean.index == "work/shards/clean/{key}/index"


def test_the_command_of_a_stage_without_shards_lacks_the_option_gather(rules):
    """The stage split runs as one job; --gather would make it join shards that do not exist."""
    rule_by_name = {rule.name: rule for rule in rules}

    command = rule_by_name["split"].command({"key": "own"})

    assert " --gather " not in command


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([], id="nothing"),
        # The stage that writes it runs first.
        pytest.param([{"changed deps": {"data/raw/own": "deleted"}}], id="missing input"),
        # Snakemake itself finds that it is missing.
        pytest.param(
            [{"changed outs": {"data/clean/own/together": "deleted"}}], id="missing output"
        ),
        pytest.param(
            [{"changed outs": {"data/clean/own/together": "not in cache"}}],
            id="output that is only in the project, not in the cache",
        ),
    ],
)
def test_snakemake_does_not_repeat_a_stage_only_because_files_are_missing(changes):
    """`changes` is what `dvc status` reports for the stage.

    An earlier stage writes a missing input, and Snakemake itself finds missing outputs. So these
    changes do not mean that the results of the stage would be different now.
    """
    has_to_run = snakemake_run._needs_run(changes)

    assert not has_to_run


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([{"changed outs": {"data/clean/own/together": "modified"}}], id="output"),
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
def test_snakemake_repeats_a_stage_whose_file_code_or_command_was_modified(changes):
    """`changes` is what `dvc status` reports for the stage."""
    has_to_run = snakemake_run._needs_run(changes)

    assert has_to_run


@pytest.mark.parametrize(
    ("changed_stage", "later_stages"),
    [
        ("average@tiny-own-1", {"translate@tiny-own-1", "score@tiny-own-1", "report"}),
        ("score@wide-own-1", {"report"}),
    ],
    ids=["average", "score"],
)
def test_the_stages_after_a_changed_stage_run_as_well(stages, changed_stage, later_stages):
    """A run has the stages train, average, translate and score in this order; then the report.

    The stages of other runs stay as they are.
    """
    jobs = jobs_on_a_cluster(stages)

    stages_to_run = jobs._with_later_stages({changed_stage})

    assert stages_to_run == {changed_stage} | later_stages


def test_on_a_cluster_only_training_and_translation_ask_for_a_gpu(rules, stages, monkeypatch):
    """SLURM reserves what dvc.yaml says, whatever GPUs the machine has that submits the jobs."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b,GPU-c,GPU-d")
    jobs = jobs_on_a_cluster(stages)

    gpus_by_rule = {}
    for rule in rules:
        first_stage = next(iter(rule.stages.values()))
        wildcards = wildcards_of(rule, first_stage)
        gpus_by_rule[rule.name] = jobs.share_of_job(rule, wildcards).gpus

    rules_with_gpu = {name: gpus for name, gpus in gpus_by_rule.items() if gpus}
    assert rules_with_gpu == {"train": 1, "translate": 1}


def test_an_error_while_dvc_records_the_stages_is_printed(monkeypatch, capsys):
    """The run itself has not failed, so the error must not end it; but the user has to know."""

    def record_finished():
        raise UserError("dvc.lock:3: a line is damaged. Run: git checkout dvc.lock")

    monkeypatch.setattr(snakemake_run, "record_finished", record_finished)

    snakemake_run.record_or_print_error()

    assert "dvc.lock:3: a line is damaged. Run: git checkout dvc.lock" in capsys.readouterr().err
