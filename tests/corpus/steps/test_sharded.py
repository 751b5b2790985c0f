"""What holds for the shards of every stage, seen with filtering."""

import pytest
from filelock import FileLock

from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import run_and_print, run_step
from bleuprint.rules import CHECKS
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair, TextFolder
from corpora import PAIRS, TOKENIZE, write_set


def test_a_shard_made_under_other_settings_is_not_gathered(tmp_path):
    before = TextFolder(tmp_path / "before", "de", "en")
    write_set(before, "train", [Pair("a b c", "d e"), Pair("f", "g h i")])

    def step(most):
        checks = (CHECKS["ratio"](max=most),)
        return Filtering("m", before, tmp_path / "after", tmp_path / "ledger", checks, TOKENIZE)

    shards = tmp_path / "shards"
    run_step(step(1.5), shards, Shard(1, 2), 1)
    run_step(step(9.0), shards, Shard(2, 2), 1)
    with pytest.raises(UserError, match=r"1-of-2: this shard was made under other settings"):
        run_step(step(9.0), shards, 2, 1)
    assert not (tmp_path / "after").exists()
    run_step(step(9.0), shards, Shard(1, 2), 1)
    run_step(step(9.0), shards, 2, 1)
    assert TextFolder(tmp_path / "after", "de", "en").count("train") == 2
    with pytest.raises(UserError, match=r"1-of-3: no such shard to gather"):
        run_step(step(9.0), shards, 3, 1)


def test_shards_of_another_text_are_not_gathered(tmp_path):
    before = TextFolder(tmp_path / "before", "de", "en")
    write_set(before, "train", PAIRS)
    step = Filtering("m", before, tmp_path / "after", tmp_path / "ledger", (), TOKENIZE)
    shards = tmp_path / "shards"
    for shard in Shard.all(2):
        run_step(step, shards, shard, 1)
    write_set(before, "train", PAIRS[1:])
    with pytest.raises(UserError, match=r"shards of 6 pairs, but there are 5"):
        run_step(step, shards, 2, 1)
    assert not (tmp_path / "after").exists()


def test_two_processes_do_not_do_the_same_at_once(tmp_path):
    before = TextFolder(tmp_path / "before", "de", "en")
    write_set(before, "train", PAIRS)
    step = Filtering("m", before, tmp_path / "after", tmp_path / "ledger", (), TOKENIZE)
    (tmp_path / "shards").mkdir()
    with FileLock(tmp_path / "shards" / "all.lock"):
        with pytest.raises(UserError, match="another process is writing these shards"):
            run_step(step, tmp_path / "shards", None, 1)
        run_step(step, tmp_path / "shards", Shard(1, 1), 1)


def test_processes_at_different_shards_work_at_once(tmp_path):
    before = TextFolder(tmp_path / "before", "de", "en")
    write_set(before, "train", PAIRS)
    step = Filtering("m", before, tmp_path / "after", tmp_path / "ledger", (), TOKENIZE)
    shards = tmp_path / "shards"
    shards.mkdir()
    with FileLock(shards / "1-of-2.lock"):
        with pytest.raises(UserError, match="another process is writing these shards"):
            run_step(step, shards, Shard(1, 2), 1)
        run_step(step, shards, Shard(2, 2), 1)


def test_what_the_rules_did_is_printed_once_all_shards_are_gathered(tmp_path, capsys):
    before = TextFolder(tmp_path / "before", "de", "en")
    write_set(before, "train", [Pair("a b c", "d"), Pair("f", "g"), Pair("h", "i j k")])
    checks = (CHECKS["identical"](), CHECKS["ratio"](max=1.5))
    step = Filtering("m", before, tmp_path / "after", tmp_path / "ledger", checks, TOKENIZE)
    for work in (Shard(1, 2), Shard(2, 2)):
        run_and_print(step, tmp_path / "shards", work, 1)
    assert capsys.readouterr().out == ""
    run_and_print(step, tmp_path / "shards", 2, 1)
    assert capsys.readouterr().out == "filter m: 3 pairs in, 1 out; dropped by ratio 2\n"
    run_and_print(step, tmp_path / "shards", None, 1)
    assert capsys.readouterr().out == "filter m: 3 pairs in, 1 out; dropped by ratio 2\n"
