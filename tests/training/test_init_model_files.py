"""The model that `train.init_from` names: in a folder, of another project, or in a release."""

import hashlib
import json
from pathlib import Path

import pytest

from bleuprint.config.init_from import InitFrom
from bleuprint.runtime.errors import UserError
from bleuprint.training.init_weights import add_weight_hashes, copy_init_weights, init_files
from init_models import RUN, random_model, write_model


@pytest.fixture
def project_model(tmp_path, corpora, monkeypatch):
    """Write a model of another project, whose vocabularies are in its binarized corpus.

    The working directory is the one that contains the other project.
    """
    monkeypatch.chdir(tmp_path)
    corpus = corpora[0].binary
    folder = Path("their/models/small/own/1/averaged")
    write_model(folder, random_model(corpus, seed=1), corpus)
    segmentation = Path("their/data/binary/own/segmentation")
    segmentation.mkdir(parents=True)
    for file in folder.glob("vocabulary.*"):
        file.rename(segmentation / file.name)
    return folder


def test_the_hash_of_the_weights_is_added_to_init_from(project_model):
    """If the weights change later, their new hash tells DVC to train again."""
    init_from = {"folder": str(project_model)}
    runs = {"small": {"own": {"train": {"init_from": init_from}}, "other": {"train": False}}}

    add_weight_hashes(runs)

    weights = (project_model / "model.safetensors").read_bytes()
    assert init_from["sha256"] == hashlib.sha256(weights).hexdigest()


def test_a_model_of_another_project_is_an_init_model(project_model, corpora):
    """Its vocabularies are read from the other project; without them, copying is an error."""
    corpus = corpora[1].binary
    weights_path = project_model / "model.safetensors"
    sha256 = hashlib.sha256(weights_path.read_bytes()).hexdigest()

    files = init_files(InitFrom(folder=str(project_model), sha256=sha256), RUN)
    copy_init_weights(random_model(corpus, seed=2), corpus, files)

    assert files.weights.read_bytes() == weights_path.read_bytes()


def test_an_init_model_whose_weights_have_changed_is_refused(project_model):
    """The setting `sha256` is that of the weights before they were overwritten."""
    weights = project_model / "model.safetensors"
    sha256 = hashlib.sha256(weights.read_bytes()).hexdigest()
    weights.write_bytes(b"x")

    message = r"model.safetensors has SHA-256 [0-9a-f]{64}, which differs from the one in train"
    with pytest.raises(UserError, match=message):
        init_files(InitFrom(folder=str(project_model), sha256=sha256), RUN)


@pytest.mark.usefixtures("project_model")
@pytest.mark.parametrize(
    ("init_from", "message"),
    [
        pytest.param(
            InitFrom(folder="none"),
            "none does not exist, but init_from of micro names it",
            id="no folder",
        ),
        pytest.param(
            InitFrom(folder="their/models"),
            "must contain weights (model.safetensors or UPDATE.safetensors) and model.json. Name "
            "the folder of a model of bleuprint. If it is a model of OPUS-MT, name it by marian: "
            "their/models, not by folder",
            id="no model in the folder",
        ),
        pytest.param(
            InitFrom(system="base", corpus="own"),
            "starts/micro/1/weights does not exist",
            id="no model of the system",
        ),
    ],
)
def test_an_init_model_that_does_not_exist_is_refused(init_from, message):
    """`init_from` names a folder, or a system and its corpus. The training is one of `micro`."""
    with pytest.raises(UserError) as raised:
        init_files(init_from, RUN)

    assert message in str(raised.value)


def runs_with_init_from():
    """Return the resolved settings of a run whose init model is in the folder `start`."""
    return {"small": {"own": {"train": {"init_from": {"folder": "start"}}}}}


@pytest.fixture
def recorded_runs(tmp_path, corpora, monkeypatch):
    """Return settings with the hash of the init model, whose folder then gets another name.

    The working directory is the project.
    """
    monkeypatch.chdir(tmp_path)
    corpus = corpora[0].binary
    write_model(Path("start"), random_model(corpus, seed=1), corpus)
    runs = runs_with_init_from()
    add_weight_hashes(runs)
    Path("start").rename("elsewhere")
    Path("reports").mkdir()
    return runs


@pytest.mark.usefixtures("recorded_runs")
def test_an_init_model_whose_folder_is_missing_is_refused():
    with pytest.raises(UserError, match=r"start does not exist, but init_from of small"):
        add_weight_hashes(runs_with_init_from())


@pytest.mark.usefixtures("recorded_runs")
def test_the_message_about_a_missing_init_model_names_its_line_in_params_yaml():
    """Folder `start` does not exist, and no committed settings contain the hash of its weights."""
    lines = [
        "corpora:",
        "  own: {}",
        "systems:",
        "  small:",
        "    train:",
        "      init_from: {folder: start}",
    ]
    Path("params.yaml").write_text("\n".join(lines) + "\n")

    message = r"^params.yaml:6: systems.small.train.init_from.folder: .*start does not exist"
    with pytest.raises(UserError, match=message):
        add_weight_hashes(runs_with_init_from())


@pytest.mark.usefixtures("recorded_runs")
@pytest.mark.parametrize("damaged_json", ["<<<<<<<", "[]", '{"runs": 1}', '{"runs": {"small": 1}}'])
def test_a_damaged_resolved_json_gives_no_hash_of_a_missing_init_model(damaged_json):
    """A conflict of a Git merge may damage it. The error is the one about the missing folder."""
    Path("reports/resolved.json").write_text(damaged_json)

    with pytest.raises(UserError, match=r"start does not exist"):
        add_weight_hashes(runs_with_init_from())


def test_the_hash_of_a_missing_init_model_is_read_from_the_committed_settings(recorded_runs):
    """A clone of the project has reports/resolved.json, but not the folder of the init model."""
    Path("reports/resolved.json").write_text(json.dumps({"runs": recorded_runs}))
    runs = runs_with_init_from()
    assert "sha256" not in runs["small"]["own"]["train"]["init_from"]

    add_weight_hashes(runs)

    assert "sha256" in runs["small"]["own"]["train"]["init_from"]
    assert runs == recorded_runs


@pytest.mark.parametrize(
    "updates",
    [("90", "100"), ("9999990", "10000000")],
    ids=["two and three digits", "seven and eight digits"],
)  # last is largest
def test_the_checkpoint_of_the_largest_update_in_a_folder_is_the_init_model(
    tmp_path, corpora, updates
):
    """Sorted as text, the larger of the two updates would come first."""
    folder = tmp_path / "init"
    corpus = corpora[0].binary
    weights = write_model(folder, random_model(corpus, seed=1), corpus).weights
    for update in updates:
        (folder / f"{update}.safetensors").write_bytes(weights.read_bytes())
    weights.unlink()

    files = init_files(InitFrom(folder=str(folder)), RUN)

    assert files.weights.name == f"{updates[-1]}.safetensors"


@pytest.fixture
def release(tmp_path, corpora, monkeypatch):
    """Write a release of two models, large and small, with the SHA-256 of their files."""
    monkeypatch.chdir(tmp_path)
    corpus = corpora[0].binary
    release = Path("release")
    for system in ("large", "small"):
        folder = release / f"models/{system}/own/1/averaged"
        write_model(folder, random_model(corpus, seed=1), corpus)
    lines = []
    for path in release.rglob("*"):
        if path.is_file():
            sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f"{sha256}  {path.relative_to(release)}\n")
    (release / "SHA256SUMS").write_text("".join(lines))
    return release


def test_a_model_in_a_release_is_an_init_model(release):
    """A release contains the models of several systems; the folder names one of them."""
    folder = release / "models/small/own/1/averaged"

    files = init_files(InitFrom(folder=str(folder)), RUN)

    assert files.weights == folder.resolve() / "model.safetensors"


@pytest.mark.usefixtures("release")
def test_a_release_with_two_models_is_refused_with_an_example_of_one():
    """The release contains the systems large and small, of which large comes first."""
    message = r"contains 2 models. Name one of them, such as .*/large/own/1/averaged"
    with pytest.raises(UserError, match=message):
        init_files(InitFrom(folder="release"), RUN)


def test_a_release_with_one_model_is_an_init_model(release, tmp_path):
    """Without its second model, the release as a whole can be named: the choice is clear."""
    (release / "models/large").rename(tmp_path / "large")

    files = init_files(InitFrom(folder="release"), RUN)

    folder = release / "models/small/own/1/averaged"
    assert files.weights == folder.resolve() / "model.safetensors"


def test_a_file_of_a_release_that_differs_from_sha256sums_is_refused(release):
    """A release lists the SHA-256 of its files; one of them is changed, as by a broken download."""
    folder = release / "models/small/own/1/averaged"
    description_path = folder / "model.json"
    description = json.loads(description_path.read_text())
    description["fingerprint"] = "other"
    description_path.write_text(json.dumps(description))

    message = r"model.json is damaged: its SHA-256 differs from the one in SHA256"
    with pytest.raises(UserError, match=message):
        init_files(InitFrom(folder=str(folder)), RUN)
