"""Pretrained models that params.yaml names are downloaded, imported and pinned."""

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import marian
import micro
import trainings
from bleuprint.config.experiment import load_settings
from bleuprint.pipeline.resolve import resolved_settings
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.serving.import_marian import describe_shape, import_marian
from bleuprint.serving.pretrained_models import import_named_models

COMMIT = "c123456789abcdef0123456789abcdef01234567"
NAME = {"huggingface": "org/opus", "revision": COMMIT}
ADDRESS = f"/huggingface.co/org/opus/resolve/{COMMIT}"
IMPORTED_FOLDER = f"work/pretrained/imported/org/opus@{COMMIT}"
KEYS = ("corpora", "toy", "vocabulary")


def use_model(root, shape, name, **train):
    """Let the system `micro` start from a model, and the corpus `toy` have its subwords.

    Args:
        root: The folder of a project that `trainings.write_params` has written.
        shape: The settings of the model, as YAML.
        name: The settings that name the model.
        train: Further settings of the training.
    """
    path = root / "params.yaml"
    yaml = YAML()
    content = yaml.load(path)
    system = content["systems"]["micro"]
    system["model"] = yaml.load(shape)
    system["train"].update({"init_from": dict(name), **train})
    content["corpora"]["toy"]["vocabulary"] = {"sentencepiece": dict(name)}
    yaml.dump(content, path)


@pytest.fixture
def opus(tmp_path):
    """Return the folder of a small model in the Marian format."""
    folder = tmp_path / "opus"
    marian.write_marian(folder, max_position_embeddings=256)
    return folder


@pytest.fixture
def shape(opus, tmp_path):
    """Return the settings of that model, as YAML."""
    return describe_shape(import_marian(opus, tmp_path / "for-its-shape"))


@pytest.fixture
def project(tmp_path, monkeypatch, opus, shape):
    """Return a project, the working folder, that names the model by its folder inputs/opus."""
    root = tmp_path / "project"
    root.mkdir()
    shutil.copytree(opus, root / "inputs/opus")
    trainings.write_params(root)
    monkeypatch.chdir(root)
    use_model(root, shape, {"marian": "inputs/opus"})
    return root


def pinned_hashes():
    """Return the SHA-256 of the weights and subwords, as resolve pins them; and write the file."""
    content = resolved_settings(load_settings())
    write_json(Path("reports/resolved.json"), content)
    weights = content["runs"]["micro"]["toy"]["train"]["init_from"]
    pieces = content["corpora"]["toy"]["vocabulary"]["sentencepiece"]
    return weights["sha256"], pieces["sha256"]


def test_a_model_in_a_folder_is_imported_and_pinned(project):
    """The imported model is the one that `bleuprint import` writes."""
    import_marian(project / "inputs/opus", project / "expected")

    hashes = pinned_hashes()

    (imported,) = (project / "work/pretrained/imported").glob("opus-*[!k]")
    for path in (project / "expected").iterdir():
        assert (imported / path.name).read_bytes() == path.read_bytes()
    assert pinned_hashes() == hashes


def test_other_weights_in_the_folder_are_pinned_anew(project):
    weights_hash, pieces_hash = pinned_hashes()
    marian.write_marian(project / "inputs/opus", gain=2.0, max_position_embeddings=256)

    new_weights_hash, new_pieces_hash = pinned_hashes()

    assert new_weights_hash != weights_hash
    assert new_pieces_hash == pieces_hash


def test_a_clone_without_the_folder_keeps_the_recorded_hashes(project):
    hashes = pinned_hashes()
    shutil.rmtree(project / "inputs/opus")
    shutil.rmtree(project / "work")

    assert pinned_hashes() == hashes


def test_an_imported_model_is_used_after_its_folder_was_removed(project):
    """Another seed may be trained later, and needs the same weights and subwords."""
    hashes = pinned_hashes()
    shutil.rmtree(project / "inputs/opus")

    import_named_models(load_settings().corpus("toy").vocabulary, KEYS)

    assert pinned_hashes() == hashes


@pytest.mark.usefixtures("no_proxies")
def test_a_model_by_name_is_downloaded_once(project, opus, shape, host, monkeypatch):
    """A clone with the pinned SHA-256 does not download it; the stage that reads it does."""
    monkeypatch.setenv("BLEUPRINT_MIRROR", host.prefix)
    for path in opus.iterdir():
        host.put(f"{ADDRESS}/{path.name}", path.read_bytes())
    use_model(project, shape, {**NAME, "marian": None})

    hashes = pinned_hashes()
    assert pinned_hashes() == hashes
    request_count = len(host.requests_for(f"{ADDRESS}/model.safetensors"))
    shutil.rmtree(project / "work")
    hashes_in_clone = pinned_hashes()
    requests_of_clone = len(host.requests_for(f"{ADDRESS}/model.safetensors")) - request_count
    import_named_models(load_settings().corpus("toy").vocabulary, KEYS)

    assert request_count == 1
    assert requests_of_clone == 0
    assert hashes_in_clone == hashes
    assert (project / IMPORTED_FOLDER / "sentencepiece.source").exists()
    locked = json.loads((project / "downloads.lock").read_text())
    assert f"https:/{ADDRESS}/model.safetensors" in locked


def test_a_system_of_another_shape_is_told_the_settings_of_the_model(project, shape):
    use_model(project, "{d_model: 64}", {"marian": "inputs/opus"})

    with pytest.raises(UserError) as error:
        resolved_settings(load_settings())

    message = str(error.value)
    assert "params.yaml:" in message
    assert "systems.micro.model: model." in message
    assert message.endswith(f"Write: model: {shape}")


class _Command:
    """An object whose unpickling runs a command."""

    def __reduce__(self):
        return subprocess.run, ([sys.executable, "-c", "open('ran', 'w')"],)


def use_other_architecture(folder):
    """Write the config.json of a BERT model."""
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "hidden_size": 768}))


def add_token(folder):
    """Add a token to the vocabulary, which the weights do not have."""
    path = folder / "vocab.json"
    ids = json.loads(path.read_text())
    path.write_text(json.dumps({**ids, "new": len(ids)}))


def remove_pieces(folder):
    """Remove the SentencePiece model of the source language."""
    (folder / "source.spm").unlink()


def use_pickled_code(folder):
    """Replace the weights by a pickled file that runs a command."""
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"x": _Command()}))


@pytest.mark.filterwarnings("error:Detected pickle protocol")
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(use_other_architecture, "model_type is bert, another", id="BERT"),
        pytest.param(add_token, "tokens, but the model in config.json has", id="vocabulary"),
        pytest.param(remove_pieces, r"source\.spm: no such file", id="no pieces"),
        pytest.param(use_pickled_code, r"pytorch_model\.bin is damaged", id="pickled code"),
        pytest.param(shutil.rmtree, "is not a folder", id="no folder"),
    ],
)
def test_a_model_that_cannot_be_imported_is_named_with_the_line_of_params_yaml(
    project, damage, message
):
    """Nothing is left that looks like an imported model.

    torch warns of the protocol in which the code is pickled; a user must see our message only.
    """
    damage(project / "inputs/opus")

    pattern = rf"^params\.yaml:\d+: corpora\.toy\S+\.marian: [^\n]*{message}[^\n]*$"
    with pytest.raises(UserError, match=pattern):
        resolved_settings(load_settings())

    assert not list((project / "work/pretrained/imported").glob("*/model.json"))
    assert not (project / "ran").exists()


@pytest.mark.usefixtures("no_proxies", "pauses")
def test_a_name_that_does_not_exist_is_named_with_the_line_of_params_yaml(
    project, shape, host, monkeypatch
):
    monkeypatch.setenv("BLEUPRINT_MIRROR", host.prefix)
    use_model(project, shape, {**NAME, "marian": None})

    pattern = rf"^params\.yaml:\d+: corpora\.toy\S+\.huggingface: [^\n]*opus/resolve/{COMMIT}"
    with pytest.raises(UserError, match=pattern):
        resolved_settings(load_settings())


def test_dvc_downloads_a_model_and_trains_from_it(tmp_path, opus, shape):
    """After the run all stages are up to date, also without the model; an edit trains again."""
    project = micro.make(tmp_path / "project")
    mirror = tmp_path / "mirror"
    shutil.copytree(opus, mirror / ADDRESS.removeprefix("/"))
    project.environment["BLEUPRINT_MIRROR"] = str(mirror)
    name = f"{{huggingface: org/opus, revision: {COMMIT}}}"
    project.edit("params.yaml", "{bpe: {num_merges: 40}}", f"{{sentencepiece: {name}}}")
    project.edit(
        "params.yaml",
        "    model: {encoder_layers: 1, decoder_layers: 1, d_model: 32, d_ff: 48, heads: 2}\n",
        f"    model: {shape}\n",
    )
    before_second_system, _, _ = project.read("params.yaml").partition("  wide:\n")
    project.write("params.yaml", before_second_system)
    project.edit("params.yaml", "max_updates: 60", f"max_updates: 60\n      init_from: {name}")

    ran = project.repro()

    assert "train@tiny-own-1" in ran
    assert project.changed_stages() == set()
    shutil.rmtree(project.root / "work")
    assert project.changed_stages() == set()
    project.edit("params.yaml", "lr: 0.02", "lr: 0.01")
    ran_again = project.repro()
    assert "train@tiny-own-1" in ran_again
    assert "learn_vocabulary@own" not in ran_again
    assert (project.root / IMPORTED_FOLDER / "model.safetensors").exists()
