"""Runs are called by what differs between them; names that users gave are kept."""

from pathlib import Path

from bleuprint.config.experiment import load
from bleuprint.tracking.run_names import DIFFERS, _differences, _without_common_start, rename
from bleuprint.tracking.runs import Content, create
from bleuprint.tracking.sync import sync
from mlruns import named


def test_corpora_lose_the_words_that_all_begin_with() -> None:
    names = {"news-en-de", "news-en-fr", "news-cs"}
    assert _without_common_start(names) == {
        "news-en-de": "en-de",
        "news-en-fr": "en-fr",
        "news-cs": "cs",
    }
    assert _without_common_start({"news", "news-en"}) == {"news": "news", "news-en": "news-en"}
    assert _without_common_start({"only"}) == {"only": ""}


def test_settings_that_differ_are_named_as_short_as_is_clear() -> None:
    base = {"model.heads": "4", "model.dropout.rate": "0", "train.rate": "1"}
    assert _differences([base, base]) == ["", ""]
    assert _differences([base, {**base, "model.heads": "8"}]) == ["heads 4", "heads 8"]
    other = {"model.heads": "4", "model.dropout.rate": "1", "train.rate": "2"}
    assert _differences([base, other]) == [
        "model.dropout.rate 0, train.rate 1",
        "model.dropout.rate 1, train.rate 2",
    ]
    assert _differences([{}, {"train.new": "1"}]) == ["", "new 1"]


def test_a_second_training_of_a_cell_is_named_by_its_settings(root: Path) -> None:
    list(sync(load()))
    client, runs = named(root)
    one, experiment = runs["tiny 1"], runs["tiny 1"].info.experiment_id
    assert DIFFERS not in one.data.tags  # of the same settings as small
    names = ("bleuprint.name", "mlflow.runName")
    tags = {key: text for key, text in one.data.tags.items() if key not in names}
    params = {**one.data.params, "train.max_updates": "99"}
    create(client, experiment, Content("tiny news-en-de 1", tags, "", params), 0.0)
    client.update_run(runs["small 2"].info.run_id, name="my best")
    assert rename(client, experiment)
    assert not rename(client, experiment)
    _, runs = named(root)
    updates = one.data.params["train.max_updates"]
    of_one = {f"tiny 1 max_updates {count}" for count in (updates, "99")}
    assert runs["tiny 1 max_updates 99"].data.tags[DIFFERS] == "max_updates 99"
    assert set(runs) == {*of_one, "tiny 2", "small 1", "my best"}
