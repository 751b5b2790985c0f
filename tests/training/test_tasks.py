"""The first example of a course: memorizing four words, from text to translation."""

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

WORDS = Units(words=Words(joint=False, max_size=100, min_count=1))
SPACES = Tokenize(name="none", lowercase=False, hyphens=False, escape=False)


def test_four_words_are_learnt_by_heart(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "off")
    sets = {
        "train": [("ich mochte ein bier", "i want a beer")],
        "valid": [("ich mochte ein cola", "i want a coke")],
        "test.x": [("ich mochte ein wasser", "i want a water")],
    }
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
    system = systems.system(model=systems.model(tie_embeddings="none"), train=settings)
    corpus = prepare(tmp_path / "data", sets, tokenize=SPACES, units=WORDS, checks=()).binary
    job = Job(Run("s", "c", 1), system, corpus.folder, tmp_path / "data/split", "code")
    work, _, fingerprints = train_here(job, tmp_path)
    export_checkpoints(job, work, fingerprints, tmp_path / "checkpoints")
    average_checkpoints(tmp_path / "checkpoints", Average(last=1), tmp_path / "averaged")
    model = load_model(tmp_path / "averaged", corpus)
    ids = pad([list(corpus.segmentation("de").encode(["ich mochte ein bier"]))])
    (words,) = greedy_search(model, ids)
    assert corpus.text("en", words) == "i want a beer"
