"""The data stages: the names of their scripts, and one step of them, whole or in shards."""

from bleuprint.corpus.steps.shard import AllShards, Shard, TextToIndex, WholeText
from bleuprint.corpus.steps.sharded import run_step
from bleuprint.pipeline.dvc_yaml import load_entries
from root import ROOT

# The scripts that prepare a corpus, in the order of dvc.yaml.
DATA_STAGES = [entry.script for entry in load_entries(ROOT).values() if entry.is_per_corpus()]


def run_sharded(step, folder, shards=1, workers=1):
    """Run a step of a data stage: on the whole text, or shard by shard, as Snakemake does.

    Args:
        step: The step.
        folder: The folder for the shards.
        shards: The number of shards; with 1 the whole text is processed without sharding.
        workers: The number of processes.
    """
    if shards == 1:
        run_step(step, folder, work=WholeText(), workers=workers)
        return
    run_step(step, folder, work=TextToIndex(), workers=workers)
    # Snakemake runs shards in any order, so the output must not depend on it. In the order of their
    # numbers, a test could not tell.
    for shard in reversed(Shard.all(shards)):
        run_step(step, folder, work=shard, workers=workers)
    _gather(step, folder, shards, workers)


def _gather(step, folder, shards, workers):
    """Write the output of a step from its shards."""
    run_step(step, folder, work=AllShards(shards), workers=workers)
