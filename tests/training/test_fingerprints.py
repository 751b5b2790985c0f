"""What decides the weights of a training is in its fingerprint; each part is changed in turn."""

import dataclasses

import pytest

import systems
from bleuprint.config.paths import Run
from bleuprint.config.runs import training_settings_sha256
from bleuprint.model.weights import write_description
from bleuprint.runtime import fingerprint
from bleuprint.runtime.files import read_json, write_json
from bleuprint.training.fingerprints import Fingerprints, work_folder
from bleuprint.training.init_weights import InitFiles
from bleuprint.training.job import Job
from corpora import PAIRS
from prepared import prepare

SETS = {"train": PAIRS[:-2], "valid": PAIRS[-2:]}
SYSTEM = systems.system()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("corpus"), SETS)


def job_on(corpus, **changes):
    """A training on a prepared corpus."""
    job = Job(
        run=Run("micro", "toy", 1),
        system=SYSTEM,
        corpus_folder=corpus.binary.folder,
        split_folder=corpus.text("split").path,
        code_fingerprint="code",
    )
    return dataclasses.replace(job, **changes)


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("settings", {"run": Run("micro", "toy", 2)}),
        ("settings", {"system": systems.system(model=systems.model(d_ff=65))}),
        ("settings", {"system": systems.system(train=systems.train(label_smoothing=0.2))}),
        ("settings", {"system": dataclasses.replace(SYSTEM, arithmetic="portable")}),
        ("code", {"code_fingerprint": "other code"}),
    ],
    ids=["seed", "model", "train", "arithmetic", "code"],
)
def test_another_setting_or_code_is_another_training(prepared, part, changes):
    before = Fingerprints.from_job(job_on(prepared))
    after = Fingerprints.from_job(job_on(prepared, **changes))
    changed = {name for name, mark in after.by_name().items() if mark != before.by_name()[name]}
    assert changed == {part}
    assert after.combined != before.combined


@pytest.mark.parametrize(
    "changes",
    [
        {"run": Run("renamed", "toy", 1)},
        {"run": Run("micro", "renamed", 1)},
        {"system": systems.system(decode=systems.decode(beam=3))},
        {"system": systems.system(average=dataclasses.replace(SYSTEM.average, last=2))},
    ],
    ids=["system's name", "corpus's name", "decode", "average"],
)
def test_what_does_not_decide_the_weights_is_the_same_training(prepared, changes):
    before = Fingerprints.from_job(job_on(prepared))
    assert Fingerprints.from_job(job_on(prepared, **changes)) == before


@pytest.mark.parametrize(
    "sets",
    [
        {"train": PAIRS[:-3], "valid": PAIRS[-2:]},
        {"train": PAIRS[-3::-1], "valid": PAIRS[-2:]},
        {"train": PAIRS[:-2], "valid": PAIRS[-1:]},
    ],
    ids=["train", "order of train", "valid"],
)
def test_other_text_is_another_training(prepared, tmp_path, sets):
    before = Fingerprints.from_job(job_on(prepared))
    after = Fingerprints.from_job(job_on(prepare(tmp_path, sets)))
    assert after.data != before.data
    assert after.combined != before.combined
    assert (after.settings, after.code) == (before.settings, before.code)


@pytest.mark.parametrize("language", ["de", "en"])
def test_other_validation_references_are_another_training(prepared, tmp_path, language):
    texts = tmp_path / "split"
    texts.mkdir()
    for path in prepared.text("split").path.glob("valid.*"):
        (texts / path.name).write_bytes(path.read_bytes())
    before = Fingerprints.from_job(job_on(prepared, split_folder=texts))
    assert before == Fingerprints.from_job(job_on(prepared))
    path = texts / f"valid.{language}"
    path.write_text(path.read_text("utf-8").replace("a", "o", 1), "utf-8")
    assert Fingerprints.from_job(job_on(prepared, split_folder=texts)).data != before.data


def test_each_part_counts_in_the_fingerprint_of_all():
    parts = {"settings": "s", "code": "c", "data": "d", "start": "t"}
    whole = Fingerprints(**parts)
    assert whole.by_name() == parts
    marks = {Fingerprints(**{**parts, name: "x"}).combined for name in parts}
    assert len(marks | {whole.combined, Fingerprints("s", "c", "d").combined}) == 6


def test_other_weights_or_vocabularies_of_a_start_are_another_start(tmp_path, prepared):
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    start = InitFiles("general own", tmp_path / "model.safetensors")
    marks = []
    for weights, source, target in (
        (b"weights", "a", "b"),
        (b"others", "a", "b"),
        (b"weights", "c", "b"),
        (b"weights", "a", "c"),
    ):
        start.weights.write_bytes(weights)
        write_model(tmp_path, prepared, source, target)
        marks.append(start.fingerprint())
    assert len(set(marks)) == 4


def write_model(folder, prepared, source, target):
    """model.json whose vocabularies have the SHA-256 of these characters, repeated."""
    write_description(folder, SYSTEM.model, prepared.binary, "mark")
    described = read_json(folder / "model.json")
    described["vocabularies"]["source"]["sha256"] = source * 64
    described["vocabularies"]["target"]["sha256"] = target * 64
    write_json(folder / "model.json", described)


def test_seeds_and_systems_have_folders_of_their_own(prepared, tmp_path, monkeypatch):
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    jobs = [job_on(prepared, run=Run("micro", "toy", seed)) for seed in (1, 2)]
    marks = [Fingerprints.from_job(job) for job in jobs]
    folders = [work_folder(job, mark) for job, mark in zip(jobs, marks, strict=True)]
    assert folders[0] != folders[1]
    folders[0].mkdir(parents=True)
    renamed = job_on(prepared, run=Run("renamed", "toy", 1))
    assert work_folder(renamed, Fingerprints.from_job(renamed)) == folders[0]


def test_settings_of_the_model_and_of_its_training_change_the_fingerprint():
    changes = [
        ("model", {"d_ff": 65}),
        ("model", {"dropout": 0.3}),
        ("train", {"max_updates": 51}),
        ("train", {"clip_norm": 2.0}),
        ("train", {"bpe_dropout": 0.1}),
        ("train", {"ema": 0.9}),
    ]
    marks = {training_settings_sha256(SYSTEM, 1), training_settings_sha256(SYSTEM, 2)}
    for part, change in changes:
        changed = getattr(systems, part)(**change)
        marks.add(training_settings_sha256(dataclasses.replace(SYSTEM, **{part: changed}), 1))
    assert len(marks) == 2 + len(changes)


def test_an_optional_setting_that_is_not_set_changes_no_fingerprint():
    @dataclasses.dataclass
    class Rule:
        limit: int
        language: str | None = None

    before = fingerprint.of_settings({"a": 1, "b": [True, "x"]}, Rule(3))
    assert before == fingerprint.of_settings({"b": (True, "x"), "a": 1}, Rule(3, None))
    # worked out with sha256sum
    assert before == "02d19871d96abc8d3a5000d5e7c42110c9aeae8738b9372454554ab5b83c47b3"
    others = [
        fingerprint.of_settings({"a": 1, "b": [True, "x"]}, Rule(3, "de")),
        fingerprint.of_settings({"a": 1, "b": [True, "x"]}, Rule(4)),
        fingerprint.of_settings({"a": 1, "b": ["x", True]}, Rule(3)),
        fingerprint.of_settings(Rule(3), {"a": 1, "b": [True, "x"]}),
    ]
    assert len({before, *others}) == 5
