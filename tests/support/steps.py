"""The data stages: the names of their scripts, and one step of them, whole or in shards."""

import re

from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import run_step
from root import ROOT

# Scripts whose ${key} is a row, a vocabulary or the like, not a corpus.
_NOT_OF_A_CORPUS = ("make_text", "share_vocabulary", "start")
_SCRIPTS_WITH_A_KEY = re.findall(r"stages/(\w+)\.py \$\{key\}", (ROOT / "dvc.yaml").read_text())
# The scripts that prepare a corpus, in the order of dvc.yaml.
DATA_STAGES = [script for script in _SCRIPTS_WITH_A_KEY if script not in _NOT_OF_A_CORPUS]


def run_sharded(step, folder, shards=1, workers=1):
    """Run a step of a data stage: on the whole text, or shard by shard.

    Args:
        step: The step.
        folder: The folder for the shards.
        shards: The number of shards; with 1 the whole text is processed without sharding.
        workers: The number of processes.
    """
    if shards == 1:
        run_step(step, folder, work=None, workers=workers)
        return
    # Snakemake runs shards in any order, so the output must not depend on it. In the order of their
    # numbers, a test could not tell.
    for shard in reversed(Shard.all(shards)):
        run_step(step, folder, work=shard, workers=workers)
    _gather(step, folder, shards, workers)


def _gather(step, folder, shards, workers):
    """Write the output of a step from its shards; `run_step` gathers if it gets their number."""
    run_step(step, folder, work=shards, workers=workers)
