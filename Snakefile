# The graph of dvc.yaml, run in parallel or on a cluster: `snakemake -c2`. Nothing is defined here.
#
# Finished stages are recorded in DVC when the run ends, also if it fails, so that `dvc repro` and
# `dvc status` take them for up to date. Outputs of `dvc repro`, `dvc checkout` and `dvc pull` look
# out of date to Snakemake, which compares modification times: if `dvc status` is clean, run
# `snakemake --touch -F -c1`.
#
# `snakemake -c8 --set-scatter shards=8` prepares each corpus in eight jobs a stage, to the same bytes.
#
# After a run was killed (SIGKILL, power), the same command continues: a lock that the killed Snakemake
# has left on this machine is removed here, and profiles/default sets `rerun-incomplete`.
from bleuprint.pipeline import dvc_lock
from bleuprint.pipeline import slurm
from bleuprint.pipeline import graph
from bleuprint.runtime.errors import exit_on_error

if workflow.is_main_process:
    dvc_lock.unlock_after_kill()
    graph.record_at_exit(workflow)

with exit_on_error():
    if workflow.is_main_process:
        dvc_lock.repair()
    STAGES = graph.stages()
    slurm.apply_kind_overrides(workflow.resource_settings, STAGES)

INPUTS = graph.inputs(STAGES)
graph.use_this_python()


onstart:
    with exit_on_error():
        slurm.check(workflow)
        dvc_lock.lock_outputs(
            path for job in workflow.dag.needrun_jobs() for path in job.output
        )


onsuccess:
    dvc_lock.release()
    graph.record_or_print_error()


onerror:
    dvc_lock.release()
    graph.record_or_print_error()


rule all:
    default_target: True
    input:
        [path for stage in STAGES for path in stage.outputs],
    localrule: True
    message:
        "all outputs are up to date"


scattergather:
    shards=1,


SHARDS = gather.shards("{scatteritem}")


# Loop variables are looked up when a rule runs, and would then be those of the last stage: the
# shell command reads params and log instead.
for stage in STAGES:
    scattered = stage.sharded and len(SHARDS) > 1
    if scattered:

        rule:
            name:
                f"shard_{stage.name}"
            input:
                INPUTS[stage.name],
            output:
                temp(directory(stage.shard)),
            log:
                f"{stage.log}.{{scatteritem}}",
            conda:
                "environment.yaml"
            resources:
                **slurm.resources(stage),
            params:
                command=stage.command,
                digest=stage.digest,
            message:
                f"{stage.name}, shard {{wildcards.scatteritem}}"
            shell:
                "(BLEUPRINT_WORKERS=1 {params.command} --shard {wildcards.scatteritem})"
                " 2>&1 | (trap '' TERM; tee {log})"

    rule:
        name:
            stage.name
        input:
            stage=INPUTS[stage.name],
            shards=gather.shards(stage.shard) if scattered else [],
        output:
            [directory(path) for path in stage.folders],
            stage.files,
            # not removed if the stage fails, since they are in git
            [update(path) for path in stage.kept],
        log:
            stage.log,
        conda:
            "environment.yaml"
        threads: stage.threads
        resources:
            **slurm.resources(stage),
        params:
            begin=stage.begin_command(),
            command=stage.marked_command(len(SHARDS)),
        # instead of all input and output files
        message:
            stage.name
        shell:
            # SIGTERM reaches all of a job's processes: the shell and tee wait until the stage has saved.
            "export BLEUPRINT_WORKERS=${{BLEUPRINT_WORKERS:-{threads}}}; trap : TERM;"
            " ({params.begin} {input.stage:q} && {params.command}) 2>&1 | (trap '' TERM; tee {log})"
