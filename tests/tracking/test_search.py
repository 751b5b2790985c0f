"""What users of MLflow ask a server for, by its public interface alone."""

import pytest
import requests

from bleuprint.tracking.sync import sync
from mlservers import write_ablations

LR = "train.lr_schedule.inverse_sqrt.lr"


@pytest.fixture(scope="module")
def search(mlserver, tmp_path_factory):
    """A function from a filter to the runs of the ablations, over REST."""
    root = tmp_path_factory.mktemp("ablations")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.delenv("DVC_ROOT", raising=False)
        patch.setenv("MLFLOW_TRACKING_URI", mlserver.uri)
        assert len(list(sync(write_ablations(root, "ablations")))) == 12
    api = f"{mlserver.uri}/api/2.0/mlflow"
    named = requests.get(
        f"{api}/experiments/get-by-name", {"experiment_name": "ablations"}, timeout=30
    ).json()["experiment"]

    def found(filter_, **more):
        asked = {"experiment_ids": [named["experiment_id"]], "filter": filter_, **more}
        answer = requests.post(f"{api}/runs/search", json=asked, timeout=30)
        answer.raise_for_status()
        return [_Run(run) for run in answer.json().get("runs", [])]

    return found


class _Run:
    def __init__(self, run):
        self.name = run["info"]["run_name"]
        self.params, self.metrics = (
            {each["key"]: each["value"] for each in run["data"].get(kind, ())}
            for kind in ("params", "metrics")
        )


def test_the_runs_of_one_size_of_bpe(search):
    of_size = search("params.\"corpus.vocabulary.bpe.num_merges\" = '4000'")
    assert len(of_size) == 6
    assert {run.params["corpus"] for run in of_size} == {"4000-en-de"}
    assert {run.params["corpus"] for run in search("")} == {"4000-en-de", "news-en-de"}


def test_two_learning_rates_are_compared(search):
    runs = search("params.corpus = 'news-en-de' AND params.system LIKE 'lr-%'")
    assert {run.name: run.params[LR] for run in runs} == {
        "lr-0p002 news-en-de 1": "0.002",
        "lr-0p004 news-en-de 1": "0.004",
    }
    one, two = (run.params for run in runs)
    assert {key for key in one if one[key] != two[key]} == {"system", LR}
    assert one.keys() == two.keys()
    (best,) = search(
        "params.corpus = 'news-en-de' AND params.system LIKE 'lr-%'",
        order_by=["metrics.`bleu/first` DESC"],
        max_results=1,
    )
    assert best.params[LR] == "0.004"  # later systems have fewer errors there
