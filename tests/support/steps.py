"""The data stages: the names of their scripts, and one step of them, whole or in shards."""

import re

from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import run_step
from root import ROOT

# The scripts that prepare a corpus, in the order of dvc.yaml: those whose argument is a corpus. The
# argument of the scripts left out is another key of params.yaml.
DATA_STAGES = [
    name
    for name in re.findall(r"stages/(\w+)\.py \$\{key\}", (ROOT / "dvc.yaml").read_text())
    if name not in ("make_text", "score_outside", "share_vocabulary", "start")
]


def run_sharded(step, folder, shards=1, workers=1):
    """Run a step at once if there is one shard; else each shard, the last one first, and gather."""
    if shards == 1:
        run_step(step, folder, None, workers)
        return
    for shard in reversed(Shard.all(shards)):
        run_step(step, folder, shard, workers)
    run_step(step, folder, shards, workers)
