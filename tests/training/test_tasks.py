"""The first task of every course: memorizing four words, from text to translation."""

import systems
from bleuprint.config.corpus import Units, Words
from bleuprint.config.optimization import Constant, LrSchedule
from bleuprint.config.paths import Run
from bleuprint.config.system import Average
from bleuprint.dataset.batch import pad
from bleuprint.model.weights import load_model
from bleuprint.text.tokenizers import Tokenize
from bleuprint.training.averaging import average_checkpoints
from bleuprint.training.job import Job
from bleuprint.training.outputs import export_checkpoints
from bleuprint.training.validation import greedy_search
from prepared import prepare
from trainings import train_here


def prepare_one_pair(root):
    """Prepare a text with one training pair of four words each; words are what spaces separate."""
    sets = {
        "train": [("ich mochte ein bier", "i want a beer")],
        "valid": [("ich mochte ein cola", "i want a coke")],
        "test.x": [("ich mochte ein wasser", "i want a water")],
    }
    return prepare(
        root,
        sets,
        tokenize=Tokenize(name="none", lowercase=False, hyphens=False, escape=False),
        units=Units(words=Words(joint=False, max_size=100, min_count=1)),
        checks=(),
    )


def system_of_40_updates():
    """Return a small system that sees one pair of five tokens at each of 40 updates."""
    settings = systems.train(
        tokens_per_update=5,
        max_tokens=5,
        lr_schedule=LrSchedule(constant=Constant(0.001)),
        label_smoothing=0.0,
        validate_interval=40,
        save_interval=40,
        keep_last=1,
        keep_best=0,
        keep_interval=0,
        max_updates=40,
    )
    return systems.system(model=systems.model(tie_embeddings="none"), train=settings)


def test_a_model_learns_the_translation_of_one_sentence_by_heart(tmp_path, monkeypatch):
    """Its one training pair is repeated in 40 updates, which suffices if all steps work together.

    MLflow is off, since this test needs no record of the training.
    """
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "off")
    corpus = prepare_one_pair(tmp_path / "data").binary
    texts = tmp_path / "data" / "split"
    job = Job(Run("s", "c", 1), system_of_40_updates(), corpus.folder, texts, "code")

    training = train_here(job, tmp_path)
    export_checkpoints(job, training.folder, training.fingerprints, tmp_path / "checkpoints")
    average_checkpoints(tmp_path / "checkpoints", Average(last=1), tmp_path / "averaged")
    model = load_model(tmp_path / "averaged", corpus)
    source_ids = list(corpus.segmentation("de").encode(["ich mochte ein bier"]))
    (target_ids,) = greedy_search(model, pad([source_ids]))

    assert corpus.text("en", target_ids) == "i want a beer"
