"""A pretrained model in a project: as a baseline without training, and as a start of a training."""

import contextlib
import dataclasses

import pytest
import torch
from ruamel.yaml import YAML

import marian
import trainings
from bleuprint.config.corpus import SentencePiece, Units
from bleuprint.config.experiment import load_resolved_settings, load_settings
from bleuprint.config.paths import RESOLVED, Run
from bleuprint.config.runs import settings_sha256
from bleuprint.dataset.pretrained_pieces import add_piece_hashes, copy_pretrained_pieces
from bleuprint.pipeline.resolve import resolved_settings
from bleuprint.runs.results import Results
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.schema import to_json_value
from bleuprint.serving.import_marian import describe_use, import_marian
from bleuprint.text.tokenizers import Tokenize

RUN = Run("micro", "toy", 1)
MAX_TOKENS = 30
# The model as it is: one update that changes nothing.
FROZEN = {
    "max_updates": 1,
    "validate_interval": 1,
    "save_interval": 1,
    "lr_schedule": {"inverse_sqrt": None, "constant": {"lr": 0}},
}
# The search of transformers, whose limit does not depend on the source.
DECODE = {
    "beam": 1,
    "length_penalty": {"kind": "length", "alpha": 1.0},
    "max_len_a": 0,
    "max_len_b": MAX_TOKENS,
}


def edit_params(root, edit):
    """Change params.yaml by a function of its content."""
    path = root / "params.yaml"
    yaml = YAML()
    content = yaml.load(path)
    edit(content)
    yaml.dump(content, path)


def sha256_of_pieces(root):
    """Return the SHA-256 that the stage resolve adds to the settings of the toy corpus."""
    corpora = resolved_settings(load_settings(root / "params.yaml"), root)["corpora"]
    return corpora["toy"]["vocabulary"]["sentencepiece"]["sha256"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a project whose system `micro` is an imported model, which has translated."""
    root = tmp_path_factory.mktemp("pretrained")
    marian.write_marian(root / "opus", max_position_embeddings=256)
    settings = import_marian(root / "opus", root / "inputs" / "opus")
    trainings.make_project(
        root,
        units=Units(sentencepiece=SentencePiece(folder=str(root / "inputs" / "opus"))),
        tokenize=Tokenize(name="none"),
        pairs_of=trainings.mirrored_pairs,
    )

    def start_from_marian(content):
        system = content["systems"]["micro"]
        system["model"] = to_json_value(settings)
        system["decode"] = DECODE
        system["average"] = {"last": 1}
        system["train"].update(FROZEN)
        system["train"]["init_from"] = {"folder": "inputs/opus"}
        vocabulary = content["corpora"]["toy"]["vocabulary"]
        vocabulary["sentencepiece"] = {"folder": "inputs/opus"}

    edit_params(root, start_from_marian)
    with contextlib.chdir(root):
        content = resolved_settings(load_settings())
    write_json(root / RESOLVED, {**content, "inputs": {}, "code": {}})
    trainings.train(root)
    for stage in ("average", "translate"):
        trainings.run_stage(root, stage).check_returncode()
    return root


def test_a_pretrained_model_is_a_baseline_that_translates_as_transformers_does(project):
    """The test set is translated by the stages, and by transformers with the original folder."""
    model, tokenizer = marian.load_marian(project / "opus")
    sources = (project / "data/split/toy/test.x.de").read_text().splitlines()
    batch = tokenizer(sources, return_tensors="pt", padding=True)
    outputs = model.generate(
        **batch,
        num_beams=DECODE["beam"],
        max_length=MAX_TOKENS + 2,
        bad_words_ids=[[tokenizer.pad_token_id]],
        renormalize_logits=True,
    )

    translations = (project / RUN.results_folder / "hypotheses/test.x.en").read_text()

    expected = tokenizer.batch_decode(outputs, skip_special_tokens=True)
    assert [line.strip() for line in translations.splitlines()] == expected


def test_the_trained_model_has_the_weights_of_the_pretrained_one(project):
    expected = marian.Imported(project / "inputs/opus").model().state_dict()
    trained = marian.Imported(project / RUN.models_folder / "averaged").model().state_dict()

    for name, weight in expected.items():
        assert torch.equal(trained[name], weight), name


def test_commands_that_read_params_yaml_know_the_training(project):
    """Only reports/resolved.json has the SHA-256 of weights and pieces, params.yaml has not."""
    settings = load_settings(project / "params.yaml")
    resolved = load_resolved_settings(project)

    assert resolved.system_on("micro", "toy").train.init_from.sha256 is not None
    assert Results.find(settings, RUN, project) is not None
    assert settings_sha256(settings, RUN) == settings_sha256(resolved, RUN)


def test_the_hash_of_the_pieces_is_among_the_settings_that_dvc_compares(project, monkeypatch):
    """Other pieces in the folder have another hash."""
    monkeypatch.chdir(project)
    sha256 = sha256_of_pieces(project)

    vocabulary = project / "inputs/opus/vocabulary.target"
    content = vocabulary.read_bytes()
    vocabulary.write_bytes(content + b"new 0\n")
    try:
        other_sha256 = sha256_of_pieces(project)
    finally:
        vocabulary.write_bytes(content)

    assert other_sha256 != sha256


def test_a_clone_without_the_folder_keeps_the_recorded_hash(tmp_path, project, monkeypatch):
    monkeypatch.chdir(project)
    sha256 = sha256_of_pieces(project)
    recorded = {"folder": "inputs/opus", "sha256": sha256}
    corpus = {"vocabulary": {"sentencepiece": recorded}}
    write_json(tmp_path / "reports/resolved.json", {"corpora": {"toy": corpus}})
    (tmp_path / "params.yaml").write_bytes((project / "params.yaml").read_bytes())
    monkeypatch.chdir(tmp_path)
    settings = {"folder": "inputs/opus"}

    add_piece_hashes({"toy": {"vocabulary": {"sentencepiece": settings}}}, tmp_path)

    assert settings == recorded


def test_changed_pieces_are_refused_by_the_stage_that_copies_them(project, tmp_path, monkeypatch):
    """The settings have the SHA-256 of other pieces."""
    monkeypatch.chdir(project)
    settings = SentencePiece(folder="inputs/opus", sha256="0" * 64)

    with pytest.raises(UserError, match=r"params\.yaml:\d+: \S+folder: .* but the setting sha256"):
        copy_pretrained_pieces("toy", settings, ("de", "en"), tmp_path)


def test_pieces_with_one_vocabulary_are_refused_for_a_corpus_with_two(
    project, tmp_path, monkeypatch
):
    monkeypatch.chdir(project)
    settings = SentencePiece(folder="inputs/opus", joint=False)

    with pytest.raises(UserError, match=r"Set vocabulary\.sentencepiece\.joint: true$"):
        copy_pretrained_pieces("toy", settings, ("de", "en"), tmp_path)


def test_a_folder_without_pieces_is_refused_with_the_line_of_params_yaml(tmp_path, monkeypatch):
    trainings.write_params(tmp_path)
    monkeypatch.chdir(tmp_path)

    def use_folder(content):
        content["corpora"]["toy"]["vocabulary"] = {"sentencepiece": {"folder": "inputs/none"}}

    edit_params(tmp_path, use_folder)

    expected = r"params\.yaml:\d+: \S+folder: .*inputs/none/vocabulary\.source: no such file\. "
    with pytest.raises(UserError, match=expected):
        sha256_of_pieces(tmp_path)


def test_the_printed_settings_name_what_differs_from_the_defaults(tmp_path):
    """They are valid YAML: a user copies them into params.yaml."""
    marian.write_marian(tmp_path / "opus", max_position_embeddings=512)
    folder = tmp_path / "imported"
    settings = import_marian(tmp_path / "opus", folder)

    lines = describe_use(folder, settings).splitlines()

    (model_line,) = [line for line in lines if "model:" in line]
    model = YAML(typ="safe").load(model_line.partition("model: ")[2])
    assert dataclasses.replace(type(settings)(), **model) == settings
