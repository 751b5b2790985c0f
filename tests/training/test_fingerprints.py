"""What decides the weights of a training is in its fingerprint; each part is changed in turn."""

import dataclasses
import json

import pytest

import systems
from bleuprint.config.paths import Run
from bleuprint.config.runs import training_settings_sha256
from bleuprint.model.weights import write_description
from bleuprint.runtime import fingerprint
from bleuprint.runtime.json_files import read_json, write_json
from bleuprint.training.fingerprints import Fingerprints, work_folder
from bleuprint.training.init_weights import InitFiles
from bleuprint.training.job import Job
from corpora import PAIRS
from prepared import prepare

SYSTEM = systems.system()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Prepare a small corpus, whose last two pairs are the validation set."""
    sets = {"train": PAIRS[:-2], "valid": PAIRS[-2:]}
    return prepare(tmp_path_factory.mktemp("corpus"), sets)


def job_on(corpus, **changes):
    """Return a training on a prepared corpus, with these changes of its job."""
    job = Job(
        run=Run("micro", "toy", 1),
        system=SYSTEM,
        corpus_folder=corpus.binary.folder,
        split_folder=corpus.text("split").path,
        code_fingerprint="code",
    )
    return dataclasses.replace(job, **changes)


def fingerprints_of(corpus, **changes):
    """Return the fingerprints of a training on a prepared corpus."""
    return Fingerprints.from_job(job_on(corpus, **changes))


@pytest.mark.parametrize(
    ("changed_part", "changes"),
    [
        pytest.param("settings", {"run": Run("micro", "toy", 2)}, id="seed"),
        pytest.param(
            "settings", {"system": systems.system(model=systems.model(d_ff=65))}, id="model"
        ),
        pytest.param(
            "settings",
            {"system": systems.system(train=systems.train(label_smoothing=0.2))},
            id="train",
        ),
        pytest.param(
            "settings",
            {"system": dataclasses.replace(SYSTEM, arithmetic="portable")},
            id="arithmetic",
        ),
        pytest.param("code", {"code_fingerprint": "other code"}, id="code"),
    ],
)
def test_a_change_of_settings_or_code_changes_their_fingerprint_only(
    prepared, changed_part, changes
):
    """A training has one fingerprint for each part: settings, code, data and start."""
    original = fingerprints_of(prepared).by_name()

    changed = fingerprints_of(prepared, **changes).by_name()

    changed_parts = [part for part in original if changed[part] != original[part]]
    assert changed.keys() == original.keys()
    assert changed_parts == [changed_part]


@pytest.mark.parametrize("part", ["settings", "code", "data", "start"])
def test_a_change_of_each_part_changes_the_combined_fingerprint(part):
    """A training continues from checkpoints with the same combined fingerprint."""
    original = Fingerprints(settings="s", code="c", data="d", start="t")

    changed = dataclasses.replace(original, **{part: "x"})

    assert changed.combined != original.combined


def test_combined_fingerprints_differ_if_different_parts_have_the_same_change():
    """Each part in turn becomes "x". A training from random weights has no part `start`."""
    variants = [
        Fingerprints(settings="s", code="c", data="d", start="t"),
        Fingerprints(settings="x", code="c", data="d", start="t"),
        Fingerprints(settings="s", code="x", data="d", start="t"),
        Fingerprints(settings="s", code="c", data="x", start="t"),
        Fingerprints(settings="s", code="c", data="d", start="x"),
        Fingerprints(settings="s", code="c", data="d"),
    ]

    different_fingerprints = {variant.combined for variant in variants}

    assert len(different_fingerprints) == len(variants)


def test_fingerprints_are_recorded_by_the_name_of_their_part():
    fingerprints = Fingerprints(settings="s", code="c", data="d", start="t")

    assert fingerprints.by_name() == {"settings": "s", "code": "c", "data": "d", "start": "t"}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"run": Run("renamed", "toy", 1)}, id="name of the system"),
        pytest.param({"run": Run("micro", "renamed", 1)}, id="name of the corpus"),
        pytest.param({"system": systems.system(decode=systems.decode(beam=3))}, id="decode"),
        pytest.param(
            {"system": systems.system(average=dataclasses.replace(SYSTEM.average, last=2))},
            id="average",
        ),
    ],
)
def test_what_does_not_decide_the_weights_changes_no_fingerprint(prepared, changes):
    assert fingerprints_of(prepared, **changes) == fingerprints_of(prepared)


@pytest.mark.parametrize(
    "changed_sets",
    [
        pytest.param({"train": PAIRS[:-3], "valid": PAIRS[-2:]}, id="fewer training pairs"),
        pytest.param({"train": PAIRS[-3::-1], "valid": PAIRS[-2:]}, id="order of training pairs"),
        pytest.param({"train": PAIRS[:-2], "valid": PAIRS[-1:]}, id="fewer validation pairs"),
    ],
)
def test_a_change_of_the_text_changes_the_data_fingerprint_only(prepared, tmp_path, changed_sets):
    """The unchanged corpus trains on all pairs but the last two, and validates on these two."""
    original = fingerprints_of(prepared)

    changed = fingerprints_of(prepare(tmp_path, changed_sets))

    assert changed.data != original.data
    assert changed.combined != original.combined
    assert changed.settings == original.settings
    assert changed.code == original.code


@pytest.fixture
def copied_validation_texts(prepared, tmp_path):
    """Copy the sentences of the validation set, which are the references of its BLEU score."""
    folder = tmp_path / "split"
    folder.mkdir()
    for path in prepared.text("split").path.glob("valid.*"):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_a_copy_of_the_validation_sentences_has_the_same_fingerprints(
    prepared, copied_validation_texts
):
    """Fingerprints depend on the content of files; their folder does not count."""
    original = fingerprints_of(prepared)

    moved = fingerprints_of(prepared, split_folder=copied_validation_texts)

    assert moved == original


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_change_of_a_validation_sentence_changes_the_data_fingerprint(
    prepared, copied_validation_texts, language
):
    """Otherwise the BLEU scores of an old validation text would be kept for the new one."""
    original = fingerprints_of(prepared)
    path = copied_validation_texts / f"valid.{language}"
    text = path.read_text("utf-8")
    path.write_text(text.replace("a", "o", 1), "utf-8")

    changed = fingerprints_of(prepared, split_folder=copied_validation_texts)

    assert changed.data != original.data


@pytest.fixture
def fingerprint_of_start(prepared, tmp_path):
    """Return a function that computes the fingerprint of the model from which a training starts.

    It takes the content of the file of weights and the SHA-256 of each of the two vocabularies,
    which it writes into model.json.
    """

    def compute(weights, source_sha256, target_sha256):
        weights_path = tmp_path / "model.safetensors"
        weights_path.write_bytes(weights)
        write_description(tmp_path, SYSTEM.model, prepared.binary, "fingerprint")
        description = read_json(tmp_path / "model.json")
        description["vocabularies"]["source"]["sha256"] = source_sha256
        description["vocabularies"]["target"]["sha256"] = target_sha256
        write_json(tmp_path / "model.json", description)
        return InitFiles("general own", weights_path).fingerprint()

    return compute


def test_the_fingerprint_of_a_start_depends_on_its_weights_and_both_vocabularies(
    fingerprint_of_start,
):
    """A training that starts from another model (`train.init_from`) must not reuse checkpoints."""
    a = "a" * 64
    b = "b" * 64
    c = "c" * 64

    fingerprints = [
        fingerprint_of_start(b"weights", source_sha256=a, target_sha256=b),
        fingerprint_of_start(b"other weights", source_sha256=a, target_sha256=b),
        fingerprint_of_start(b"weights", source_sha256=c, target_sha256=b),
        fingerprint_of_start(b"weights", source_sha256=a, target_sha256=c),
    ]

    assert len(set(fingerprints)) == len(fingerprints)


@pytest.fixture
def folder_of_run(prepared, tmp_path, monkeypatch):
    """Return a function that returns the folder for the checkpoints of a run, in a new project."""
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)

    def folder(run):
        job = job_on(prepared, run=run)
        return work_folder(job, Fingerprints.from_job(job))

    return folder


def test_each_seed_has_its_own_folder_of_checkpoints(folder_of_run):
    assert folder_of_run(Run("micro", "toy", 1)) != folder_of_run(Run("micro", "toy", 2))


def test_a_renamed_system_keeps_its_folder_of_checkpoints(folder_of_run):
    """With another folder, the renamed system would be trained again."""
    folder = folder_of_run(Run(system="micro", corpus="toy", seed=1))
    folder.mkdir(parents=True)

    folder_after_renaming = folder_of_run(Run(system="renamed", corpus="toy", seed=1))

    assert folder_after_renaming == folder


@pytest.mark.parametrize(
    "changed_system",
    [
        pytest.param(systems.system(model=systems.model(d_ff=65)), id="d_ff"),
        pytest.param(systems.system(model=systems.model(dropout=0.3)), id="dropout"),
        pytest.param(systems.system(train=systems.train(max_updates=51)), id="max_updates"),
        pytest.param(systems.system(train=systems.train(clip_norm=2.0)), id="clip_norm"),
        pytest.param(systems.system(train=systems.train(bpe_dropout=0.1)), id="bpe_dropout"),
        pytest.param(systems.system(train=systems.train(ema=0.9)), id="ema"),
    ],
)
def test_a_change_of_a_setting_changes_the_hash_of_the_training_settings(changed_system):
    """With the same hash, the changed system would get the old results."""
    changed_sha256 = training_settings_sha256(changed_system, seed=1)

    assert changed_sha256 != training_settings_sha256(SYSTEM, seed=1)
    assert changed_sha256 != training_settings_sha256(SYSTEM, seed=2)


def test_different_changes_of_settings_give_different_hashes():
    """A hash names the results of a training: two trainings must not have the same."""
    changed_systems = [
        systems.system(model=systems.model(d_ff=65)),
        systems.system(model=systems.model(dropout=0.3)),
        systems.system(train=systems.train(max_updates=51)),
        systems.system(train=systems.train(clip_norm=2.0)),
        systems.system(train=systems.train(bpe_dropout=0.1)),
        systems.system(train=systems.train(ema=0.9)),
    ]

    hashes = {training_settings_sha256(system, seed=1) for system in changed_systems}

    assert len(hashes) == len(changed_systems)


def test_a_change_of_the_seed_changes_the_hash_of_the_training_settings():
    assert training_settings_sha256(SYSTEM, seed=2) != training_settings_sha256(SYSTEM, seed=1)


OLD_CODE, NEW_CODE = ("a" * 64, "b" * 64)


@pytest.fixture
def project_with_accepted_code(tmp_path, monkeypatch):
    """Work in a project in which NEW_CODE of the trainings was accepted in place of OLD_CODE."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stages").mkdir()
    entry = {
        "script": "train",
        "old": OLD_CODE,
        "new": NEW_CODE,
        "because": "only renamed",
        "date": "2026-11-30",
    }
    # JSON is YAML, too.
    (tmp_path / "stages" / "accepted.yaml").write_text(json.dumps([entry]))


@pytest.mark.usefixtures("project_with_accepted_code")
@pytest.mark.parametrize("first_code", [OLD_CODE, NEW_CODE])
def test_a_training_that_began_with_equal_code_continues_from_its_checkpoints(prepared, first_code):
    """The training was interrupted before the code was accepted, or after it."""
    first_job = job_on(prepared, code_fingerprint=first_code)
    first_fingerprints = dataclasses.replace(Fingerprints.from_job(first_job), code=first_code)
    folder = work_folder(first_job, first_fingerprints)
    folder.mkdir(parents=True)

    # The new code counts as the old one.
    job = job_on(prepared, code_fingerprint=OLD_CODE)
    fingerprints = Fingerprints.from_job(job)

    assert work_folder(job, fingerprints) == folder
    # The checkpoints in the folder contain this fingerprint.
    assert fingerprints == first_fingerprints


@pytest.mark.usefixtures("project_with_accepted_code")
def test_a_training_that_began_with_other_code_begins_anew(prepared):
    """The code "c..." was not accepted in place of any other."""
    other_job = job_on(prepared, code_fingerprint="c" * 64)
    folder = work_folder(other_job, Fingerprints.from_job(other_job))
    folder.mkdir(parents=True)

    job = job_on(prepared, code_fingerprint=OLD_CODE)

    assert work_folder(job, Fingerprints.from_job(job)) != folder


@dataclasses.dataclass
class Rule:
    """Settings of which one is optional."""

    limit: int
    language: str | None = None


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param([{"a": 1, "b": [True, "x"]}, Rule(limit=3)], id="as a list"),
        pytest.param([{"a": 1, "b": (True, "x")}, Rule(limit=3)], id="as a tuple"),
        pytest.param([{"b": [True, "x"], "a": 1}, Rule(limit=3)], id="in another order of keys"),
        pytest.param(
            [{"b": (True, "x"), "a": 1}, Rule(limit=3, language=None)], id="with None for optional"
        ),
    ],
)
def test_equal_settings_have_the_same_hash_in_every_version(settings):
    """An update of bleuprint with another hash would repeat every training of every user.

    Optional settings without a value do not count, so that new ones can be introduced.
    """
    # Computed once with sha256sum.
    sha256_in_every_version = "02d19871d96abc8d3a5000d5e7c42110c9aeae8738b9372454554ab5b83c47b3"

    assert fingerprint.of_settings(*settings) == sha256_in_every_version


def test_different_settings_have_different_hashes():
    """The first settings are changed in one place each; the last have the two parts swapped."""
    hashes = [
        fingerprint.of_settings({"a": 1, "b": [True, "x"]}, Rule(limit=3)),
        fingerprint.of_settings({"a": 1, "b": [True, "x"]}, Rule(limit=3, language="de")),
        fingerprint.of_settings({"a": 1, "b": [True, "x"]}, Rule(limit=4)),
        fingerprint.of_settings({"a": 1, "b": ["x", True]}, Rule(limit=3)),
        fingerprint.of_settings(Rule(limit=3), {"a": 1, "b": [True, "x"]}),
    ]

    assert len(set(hashes)) == len(hashes)
