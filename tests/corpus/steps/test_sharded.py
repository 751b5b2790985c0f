"""What holds for the shards of every stage, seen with filtering."""

import pytest

from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.steps.shard import AllShards, Shard, WholeText
from bleuprint.corpus.steps.sharded import run_and_print, run_step
from bleuprint.rules import CHECKS
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair, TextFolder
from corpora import TOKENIZE, write_set


@pytest.fixture
def before(tmp_path):
    folder = TextFolder(tmp_path / "before", "de", "en")
    write_set(folder, "train", [Pair("a b c", "d"), Pair("f", "g"), Pair("h", "i j k")])
    return folder


def step(before, tmp_path, most):
    checks = (CHECKS["identical"](), CHECKS["length_ratio"](max=most))
    return Filtering("m", before, tmp_path / "after", tmp_path / "filter_stats", checks, TOKENIZE)


def test_a_shard_made_under_other_settings_is_not_gathered(tmp_path, before):
    shards = tmp_path / "shards"
    run_step(step(before, tmp_path, 1.5), shards, Shard(1, 2), 1)
    run_step(step(before, tmp_path, 9.0), shards, Shard(2, 2), 1)
    with pytest.raises(UserError, match="1-of-2: made from another text or with other settings"):
        run_step(step(before, tmp_path, 9.0), shards, AllShards(2), 1)
    assert not (tmp_path / "after").exists()
    run_step(step(before, tmp_path, 9.0), shards, Shard(1, 2), 1)
    run_step(step(before, tmp_path, 9.0), shards, AllShards(2), 1)
    assert TextFolder(tmp_path / "after", "de", "en").count("train") == 3
    with pytest.raises(UserError, match="1-of-3: shard 1-of-3 is missing"):
        run_step(step(before, tmp_path, 9.0), shards, AllShards(3), 1)
    # as many pairs, of which one has another source
    write_set(before, "train", [Pair("a b c", "d"), Pair("f", "g"), Pair("x", "i j k")])
    with pytest.raises(UserError, match="1-of-2: made from another text"):
        run_step(step(before, tmp_path, 9.0), shards, AllShards(2), 1)
    write_set(before, "train", [Pair("a", "b")] * 4)
    with pytest.raises(UserError, match="1-of-2: made from another text"):
        run_step(step(before, tmp_path, 9.0), shards, AllShards(2), 1)


def test_what_the_rules_did_is_printed_once_all_shards_are_gathered(tmp_path, before, capsys):
    for work in (Shard(1, 2), Shard(2, 2)):
        run_and_print(step(before, tmp_path, 1.5), tmp_path / "shards", work, 1)
    assert capsys.readouterr().out == ""
    for work in (AllShards(2), WholeText()):
        run_and_print(step(before, tmp_path, 1.5), tmp_path / "shards", work, 1)
        assert capsys.readouterr().out == "filter m: 3 pairs in, 1 out; dropped by length_ratio 2\n"
