# Runs the stages of dvc.yaml in parallel or on a cluster: `snakemake -c2`. The stages themselves are
# defined only in dvc.yaml.
#
# DVC decides what has changed, by contents: after `dvc repro`, `dvc checkout` or `dvc pull` nothing
# runs again. Finished stages are recorded in DVC when the run ends, even if it fails.
#
# `snakemake -c8 --set-scatter shards=8` prepares each corpus, and translates each synthetic text, in
# eight jobs per stage. The outputs have the same bytes.
#
# After a run was killed (SIGKILL, power), the same command continues: a lock that the killed Snakemake
# has left on this machine is removed here, and profiles/default sets `rerun-incomplete`.
import sys

# The code of this project, as in dvc.yaml. A .venv that several projects share may contain the code of
# another one.
sys.path.insert(0, f"{workflow.basedir}/src")

from bleuprint.config.experiment import load_settings
from bleuprint.pipeline import graph, resolve, slurm, snakemake_run
from bleuprint.pipeline.rules import make_rules
from bleuprint.runtime.errors import exit_on_error

with exit_on_error():
    if workflow.is_main_process:
        snakemake_run.refuse_config(config)
        RESOLVED = resolve.resolved_content(load_settings())
        STAGES = graph.load_stages(content=RESOLVED)
    else:
        RESOLVED = None
        STAGES = graph.load_stages()
    JOBS = snakemake_run.Jobs(workflow, STAGES, RESOLVED)
    JOBS.limit_gpus()

snakemake_run.prepare_environment()


onstart:
    with exit_on_error():
        slurm.check_cluster(workflow)
        snakemake_run.resolve_first(STAGES)


onsuccess:
    snakemake_run.record_or_print_error()


onerror:
    snakemake_run.record_or_print_error()


HTML_REPORT = str(snakemake_run.HTML_REPORT)
SHOWN = {HTML_REPORT, "reports/table.md", "reports/table.csv"}


rule all:
    default_target: True
    input:
        JOBS.all_outputs,
    localrule: True
    message:
        "the last of the jobs above: all outputs are made"


scattergather:
    shards=1,


SHARDS = gather.shards("{scatteritem}")
RULES = make_rules(STAGES, len(SHARDS))


def shown(path):
    """Return an output; a table or the page is marked for the file that `snakemake --report` writes."""
    return report(path, category="Results") if path in SHOWN else path


for each in RULES:
    if each.shards > 1:

        rule:
            name:
                f"index_{each.name}"
            input:
                JOBS.input_function(each),
            output:
                temp(directory(each.index)),
            log:
                f"{each.log}.index",
            wildcard_constraints:
                **each.constraints,
            conda:
                "profiles/environment.yaml"
            resources:
                **slurm.job_resources(each),
            params:
                command=each.shard_command,
                digest=each.shard_digest,
            message:
                f"{each.message}, index of its text"
            shell:
                "({params.command} --index) 2>&1 | (trap '' TERM; tee {log})"

        rule:
            name:
                f"shard_{each.name}"
            input:
                stage=JOBS.input_function(each),
                index=each.index,
            output:
                temp(directory(each.shard())),
            log:
                f"{each.log}.{{scatteritem}}",
            wildcard_constraints:
                **each.constraints,
            conda:
                "profiles/environment.yaml"
            threads: JOBS.thread_function(each, is_shard=True)
            resources:
                **slurm.job_resources(each),
                gpu=JOBS.gpu_function(each, is_shard=True),
            params:
                command=each.shard_command,
                digest=each.shard_digest,
            message:
                f"{each.message}, shard {{wildcards.scatteritem}}"
            shell:
                "(BLEUPRINT_WORKERS=1 {params.command} --shard {wildcards.scatteritem})"
                " 2>&1 | (trap '' TERM; tee {log})"

    rule:
        name:
            each.name
        input:
            stage=JOBS.input_function(each),
            shards=[each.shard(item) for item in SHARDS if each.shards > 1],
        output:
            [directory(path) for path in each.folders],
            each.files,
            # `update`: Snakemake does not remove these if the stage fails, since they are in Git. The
            # page is not an output for DVC.
            [update(shown(path)) for path in each.git_outputs],
            [update(shown(HTML_REPORT))] if each.name == "report" else [],
        log:
            each.log,
        wildcard_constraints:
            **each.constraints,
        conda:
            "profiles/environment.yaml"
        threads: JOBS.thread_function(each)
        resources:
            **slurm.job_resources(each),
            gpu=JOBS.gpu_function(each),
        params:
            begin=each.begin,
            command=each.command,
        # By default, Snakemake would print all input and output files.
        message:
            each.message
        shell:
            # SIGTERM reaches all of a job's processes: the shell and tee wait until the stage has saved.
            "export BLEUPRINT_WORKERS=${{BLEUPRINT_WORKERS:-{threads}}};"
            " [ {resources.gpu} = 0 ] || export BLEUPRINT_GPUS=${{BLEUPRINT_GPUS:-{resources.gpu}}};"
            " trap : TERM;"
            " ({params.begin} {input.stage:q} && {params.command}) 2>&1 | (trap '' TERM; tee {log})"
