"""The data stages: their scripts, and a step of one run whole or in shards."""

import re

from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import run_step
from root import ROOT

# The scripts that prepare a corpus, in the order of dvc.yaml.
# of a corpus; the key of make_text is that of a text, of start that of a row
DATA_STAGES = [
    name
    for name in re.findall(r"stages/(\w+)\.py \$\{key\}", (ROOT / "dvc.yaml").read_text())
    if name not in ("make_text", "score_outside", "share_vocabulary", "start")
]


def run_sharded(step, folder, shards=1, workers=1):
    """All of it at once for one shard; else shard by shard, last one first, then gathered."""
    if shards == 1:
        run_step(step, folder, None, workers)
        return
    for shard in reversed(Shard.all(shards)):
        run_step(step, folder, shard, workers)
    run_step(step, folder, shards, workers)
