"""The weights that a training starts from: their files, and how they are copied into a model.

`init_from` in the settings names a run of the same experiment, or a folder. Its vocabularies may
differ from the vocabularies of the training, so the rows of embeddings and of the projection are
copied token by token. Torch is loaded only to copy weights: other stages use the files without it
in a tenth of the time.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleuprint.config import paths
from bleuprint.config.init_from import InitFrom, init_weights_folder
from bleuprint.config.paths import RESOLVED, Run
from bleuprint.config.setting_place import place_of_setting
from bleuprint.dataset.binarized import SEGMENTATION, BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import SPECIALS, Vocabulary
from bleuprint.model.description import DESCRIPTION, ModelDescription
from bleuprint.model.origin import check_bytes
from bleuprint.runtime import environment, fingerprint
from bleuprint.runtime.checksums import CHECKSUM_FILE, read_checksums
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import DamagedFile, report_as_damage
from bleuprint.runtime.json_files import read_json_object
from bleuprint.runtime.regular_files import sha256_of

if TYPE_CHECKING:
    from bleuprint.model.transformer import Transformer

# The weights with one row for each token, and the side whose vocabulary they belong to.
_SIDE_OF_TOKEN_WEIGHTS = {
    "source_embedding.weight": "source",
    "target_embedding.weight": "target",
    "projection.weight": "target",
    "projection.bias": "target",
}
_WEIGHTS = "model.safetensors"
# The end of a message about a damaged file.
_REMEDY = "Get an intact copy of its folder"
# The folders of the project above models/SYSTEM/CORPUS/SEED/averaged.
_PROJECT_OF_MODEL = "../../../../.."


@dataclass(frozen=True)
class InitFiles:
    """The files of the weights that a training starts from.

    They are the weights and model.json, which describes them, in the same folder.

    Attributes:
        name: What `train.init_from` in the settings names, for messages: a system, or a folder.
        weights: The file of the weights.
    """

    name: str
    weights: Path

    def description(self) -> ModelDescription:
        """Read model.json, which describes the weights in the same folder.

        Raises:
            UserError: The file is missing or damaged.
        """
        return ModelDescription.read(self.weights.parent, _REMEDY)

    def fingerprint(self) -> str:
        """Return one hash of the weights and of their vocabularies."""
        vocabularies = dataclasses.asdict(self.description().vocabularies)
        return fingerprint.of_settings(sha256_of(self.weights), vocabularies)

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of the weights and of model.json, by path."""
        description = self.weights.with_name(DESCRIPTION)
        return {str(path): sha256_of(path) for path in (self.weights, description)}

    def vocabulary(self, side: str) -> Path:
        """Find the file of the source or target vocabulary that the weights were trained with.

        model.json contains the SHA-256 of this file, by which it is found. In a release, the file
        is in the folder of the weights. In a project, the weights are in the folder
        models/SYSTEM/CORPUS/SEED/averaged, and the file is in the binarized corpus CORPUS.

        Args:
            side: `source` or `target`.

        Raises:
            UserError: Neither folder contains a vocabulary with this SHA-256.
        """
        vocabularies = self.description().vocabularies
        expected = vocabularies.source if side == "source" else vocabularies.target
        model_folder = self.weights.parent
        # As if the folder was in a project. If it is not, the resulting folder does not exist.
        project = model_folder / _PROJECT_OF_MODEL
        corpus_name = model_folder.parent.parent.name
        corpus_folder = paths.corpus_folder(corpus_name, "binary", project)
        for folder in (model_folder, corpus_folder / SEGMENTATION):
            for path in sorted(folder.glob("vocabulary.*")):
                if sha256_of(path) == expected.sha256:
                    return path
        raise UserError(
            f"{model_folder} lacks the {side} vocabulary: no file vocabulary.* has the SHA-256 in "
            f"{DESCRIPTION}. {_REMEDY}"
        )


def init_files(init_from: InitFrom, run: Run) -> InitFiles:
    """Find and check the files of the weights that a training, such as fine-tuning, starts from.

    The setting `train.init_from` names either another system of the experiment (the parent), which
    is trained first, or a folder with weights.

    Args:
        init_from: The setting `train.init_from`.
        run: The run to train: its system, corpus and seed.

    Raises:
        UserError: A file is missing, or differs from the one that the settings or the release
            expect. If the setting names a folder, the message names its line in params.yaml.
    """
    if init_from.parent:
        parent_folder = init_weights_folder(run.system, run.seed)
        return _checked_files(parent_folder, init_from, run)
    folder = environment.project_root() / str(init_from.folder)
    try:
        return _checked_files(folder, init_from, run)
    except UserError as error:
        # The user has written this folder in params.yaml, so the message points there.
        keys = ["runs", run.system, run.corpus, "train", "init_from", "folder"]
        raise place_of_setting(keys).error(str(error)) from None


def _checked_files(folder: Path, init_from: InitFrom, run: Run) -> InitFiles:
    """Find the files of the weights that a training starts from, and check them.

    Args:
        folder: The folder of a model, or an unpacked release that contains one model.
        init_from: The setting `train.init_from`, which may contain the SHA-256 of the weights.
        run: The run to train, for messages.

    Raises:
        UserError: A file is missing or damaged, or its SHA-256 is not the one in model.json, in the
            release or in the setting.
    """
    model_folder = _model_folder(folder, run)
    weights = _find_weights(model_folder)
    description = model_folder / DESCRIPTION
    if weights is None or not description.is_file():
        raise UserError(
            f"{model_folder} must contain weights ({_WEIGHTS} or UPDATE.safetensors) and "
            f"{DESCRIPTION}. Name the folder of a model of bleuprint. If it is a model of OPUS-MT, "
            f"name it by marian: {init_from.folder}, not by folder"
        )
    # What messages call the weights: the parent's system and corpus, or else the folder.
    name = " ".join(init_from.parent or [str(init_from.folder)])
    files = InitFiles(name, weights)
    for side in ("source", "target"):
        files.vocabulary(side)  # Raises UserError if the vocabulary is missing.
    _check_release_checksums([weights, description])
    _check_sha256(files, init_from)
    return files


def _check_sha256(files: InitFiles, init_from: InitFrom) -> None:
    """Compare the SHA-256 of weights with the ones in model.json and in the settings.

    Neither needs to be there; then there is nothing to compare with.

    Args:
        files: The weights, and model.json in the same folder.
        init_from: The setting `train.init_from`.

    Raises:
        UserError: The weights have another SHA-256.
    """
    # model.json records the SHA-256 of averaged weights, but not of checkpoints.
    if files.weights.name == _WEIGHTS:
        check_bytes(files.weights, files.description().weights_sha256)
    if init_from.sha256 is None:
        return
    sha256 = sha256_of(files.weights)
    if sha256 != init_from.sha256:
        raise UserError(
            f"{files.weights} has SHA-256 {sha256}, which differs from the one in train.init_from"
        )


def _model_folder(folder: Path, run: Run) -> Path:
    """Return the folder of the model that `train.init_from` names.

    The setting may name this folder itself, or an unpacked release. In a release, the folder of a
    model is models/SYSTEM/CORPUS/SEED/averaged.

    Args:
        folder: The folder that the setting names.
        run: The run to train, for the message.

    Raises:
        UserError: The folder does not exist, or the release contains several models.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} does not exist, but init_from of {run.system} names it")
    models = sorted(folder.glob("models/*/*/*/averaged"))
    if len(models) > 1:
        raise UserError(
            f"{folder} contains {len(models)} models. Name one of them, such as {models[0]}"
        )
    return models[0] if models else folder


def _find_weights(folder: Path) -> Path | None:
    """Find the weights in the folder of a model: the averaged ones, or else the newest checkpoint.

    Args:
        folder: The folder. It contains model.safetensors, the averaged weights, or checkpoints,
            which are named after their update, such as 0012000.safetensors.

    Returns:
        The file; None if the folder contains neither.
    """
    averaged_weights = folder / _WEIGHTS
    if averaged_weights.is_file():
        return averaged_weights
    checkpoints = []
    for path in folder.glob("*.safetensors"):
        # Other files, such as a moving average (UPDATE.ema.safetensors), are not checkpoints.
        if path.stem.isdecimal() and path.is_file():
            checkpoints.append(path)
    return max(checkpoints, key=lambda path: int(path.stem), default=None)


def add_weight_hashes(runs: Mapping[str, Mapping[str, Any]], root: Path = Path()) -> None:
    """Add the SHA-256 of the first weights to the settings of trainings that start from a folder.

    The settings are written to reports/resolved.json, which DVC compares. With the SHA-256 in them,
    DVC trains again after the weights in the folder have changed. Someone who has only downloaded
    the results may not have the folder. Then the SHA-256 is copied from the existing file, so that
    DVC sees no change.

    Args:
        runs: The settings of each training, by system and corpus. The entry `sha256` is added to
            `train.init_from` in them.
        root: The folder of the project, with the existing reports/resolved.json.

    Raises:
        UserError: The weights are missing, damaged or not the expected ones.
    """
    recorded_hashes = _recorded_hashes(root / RESOLVED)
    for run, init_from in _runs_from_folders(runs):
        folder = init_from["folder"]
        is_missing = not (environment.project_root() / folder).exists()
        if is_missing and folder in recorded_hashes:
            init_from["sha256"] = recorded_hashes[folder]
        else:
            weights = init_files(InitFrom(**init_from), run).weights
            init_from["sha256"] = sha256_of(weights)


def _recorded_hashes(resolved: Path) -> dict[str, str]:
    """Read, for each folder that trainings start from, the recorded SHA-256 of its weights.

    Args:
        resolved: The file reports/resolved.json, with the settings of each training.

    Returns:
        The SHA-256 by folder. It is empty if the file is missing or damaged, or contains the
        conflict markers of a Git merge.
    """
    # If the file cannot be used, nothing is recorded.
    with suppress(UserError), report_as_damage(resolved):
        runs = read_json_object(resolved, ("runs",))["runs"]
        recorded_hashes = {}
        for _, init_from in _runs_from_folders(runs):
            recorded_hashes[init_from["folder"]] = init_from["sha256"]
        return recorded_hashes
    return {}


def _runs_from_folders(
    runs: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Find the trainings whose setting `train.init_from` names a folder with weights.

    Args:
        runs: The settings of each training, by system and corpus.

    Yields:
        The training, and its setting `train.init_from`.
    """
    for system, settings_by_corpus in runs.items():
        for corpus, settings in settings_by_corpus.items():
            # `train` is None for external systems, which are not trained.
            train = settings["train"] or {}
            init_from = train.get("init_from", {})
            if "folder" in init_from:
                # All seeds start from the same folder, so the seed does not matter.
                yield Run(system, corpus, seed=0), init_from


def _check_release_checksums(files: Sequence[Path]) -> None:
    """Compare files with the checksums in the nearest SHA256SUMS above them, if there is one.

    A release of this program is a folder with SHA256SUMS, which must list all its files, and a
    folder `reports`. Any other SHA256SUMS may be about something else: it is ignored if it cannot
    be read, and files that it does not list are not checked.

    Args:
        files: Files in one folder.

    Raises:
        UserError: A file has another checksum; or the SHA256SUMS of a release is damaged, or does
            not list a file.
    """
    folder = _checksum_folder(files[0])
    if folder is None:
        return
    is_release = (folder / "reports").is_dir()
    try:
        checksums = read_checksums(folder / CHECKSUM_FILE)
    except UserError:
        if is_release:
            raise
        return  # It is not a list of checksums of this program.
    for path in files:
        expected_sha256 = checksums.get(path.relative_to(folder).as_posix())
        if expected_sha256 is None and is_release:
            raise DamagedFile(folder / CHECKSUM_FILE, f"no line lists {path}", _REMEDY)
        if expected_sha256 is not None and sha256_of(path) != expected_sha256:
            raise DamagedFile(path, f"its SHA-256 differs from the one in {CHECKSUM_FILE}", _REMEDY)


def _checksum_folder(path: Path) -> Path | None:
    """Return the nearest folder above a path that contains a file SHA256SUMS; None if none does."""
    for folder in path.parents:
        if (folder / CHECKSUM_FILE).is_file():
            return folder
    return None


@dataclass(frozen=True)
class _SharedTokens:
    """The source or target tokens that a model and the weights it starts from have in common.

    The id of a token is also the number of its row in an embedding matrix.

    Attributes:
        model_rows: The ids of the shared tokens in the model's vocabulary, special tokens included.
        init_rows: The ids of the same tokens in the vocabulary of the first weights, in the same
            order.
        init_size: The size of the vocabulary of the first weights.
        shared_count: The number of shared tokens, without special tokens.
        model_count: The number of tokens in the model's vocabulary, without special tokens.
    """

    model_rows: list[int]
    init_rows: list[int]
    init_size: int
    shared_count: int
    model_count: int


def copy_init_weights(model: "Transformer", corpus: BinaryCorpus, files: InitFiles) -> list[str]:
    """Copy the weights that a training starts from into its model.

    The weights may have been trained with other vocabularies, in which a token has another id. So
    the embeddings, and the projection to the vocabulary, are copied token by token, for the tokens
    that both vocabularies contain. All other tokens keep the random values of the new model.

    Args:
        model: The model, which is changed.
        corpus: The corpus that the model is trained on.
        files: The files of the weights.

    Returns:
        Messages for the user, one line each.

    Raises:
        UserError: The weights belong to another architecture, are damaged, or their vocabularies
            are missing.
    """
    difference = model.settings.difference(files.description().model)
    if difference:
        path = files.weights.with_name(DESCRIPTION)
        raise UserError(f"{path}: the first weights have another architecture: {difference}")
    tokens_by_side = {
        "source": _shared_tokens(corpus, corpus.source, files.vocabulary("source")),
        "target": _shared_tokens(corpus, corpus.target, files.vocabulary("target")),
    }
    _copy_weights(model, files.weights, tokens_by_side)
    return _describe_copied_tokens(files, corpus, tokens_by_side)


def _shared_tokens(corpus: BinaryCorpus, language: str, init_vocabulary: Path) -> _SharedTokens:
    """Find the tokens that the vocabularies of a training and of its first weights share.

    The id of a token is its row in the embeddings, and differs between the vocabularies. If `house`
    has id 12 in the first weights and id 7 in the training, row 12 is to be copied to row 7.

    Args:
        corpus: The corpus of the training, with its vocabularies.
        language: The source or target language of the corpus.
        init_vocabulary: The file of the vocabulary of the first weights.
    """
    model_vocabulary = corpus.segmentation(language).vocabulary
    init_tokens = Vocabulary.read(init_vocabulary).tokens
    init_id_by_token = {token: token_id for token_id, token in enumerate(init_tokens)}
    # Special tokens, such as EOS, have the first ids in every vocabulary, in the same order.
    model_rows = list(range(len(SPECIALS)))
    init_rows = list(range(len(SPECIALS)))
    for model_id in range(len(SPECIALS), len(model_vocabulary)):
        init_id = init_id_by_token.get(model_vocabulary.tokens[model_id])
        # A word of the text that only looks like a special token, such as `<s>`, gets no row of it.
        if init_id is not None and init_id >= len(SPECIALS):
            model_rows.append(model_id)
            init_rows.append(init_id)
    return _SharedTokens(
        model_rows=model_rows,
        init_rows=init_rows,
        init_size=len(init_tokens),
        shared_count=len(model_rows) - len(SPECIALS),
        model_count=len(model_vocabulary) - len(SPECIALS),
    )


def _copy_weights(
    model: "Transformer", path: Path, tokens_by_side: Mapping[str, _SharedTokens]
) -> None:
    """Copy weights from a file into a model.

    Tensors with one row for each token of a vocabulary, such as embeddings, are copied row by row,
    for the tokens that both vocabularies contain. All other tensors are copied whole.

    Args:
        model: The model, which is changed.
        path: The file of the weights.
        tokens_by_side: The tokens to copy, for `source` and for `target`.

    Raises:
        UserError: The file is damaged, or belongs to another architecture.
    """
    import torch

    from bleuprint.model.weights import named_weights, read_weights

    # For each tensor with one row per token: the tokens whose rows are copied.
    tokens_by_weight = {name: tokens_by_side[side] for name, side in _SIDE_OF_TOKEN_WEIGHTS.items()}
    model_weights = named_weights(model)
    expected_shapes = {}
    for name, weight in model_weights.items():
        shape = list(weight.shape)
        if name in tokens_by_weight:
            # In the file, the tensor has as many rows as the other vocabulary has tokens.
            shape[0] = tokens_by_weight[name].init_size
        expected_shapes[name] = shape
    with torch.no_grad():
        for name, init_weight in read_weights(path, expected_shapes).items():
            weight = model_weights[name]
            if name in tokens_by_weight:
                tokens = tokens_by_weight[name]
                # Row init_rows[i] of the file becomes row model_rows[i] of the model.
                init_rows = torch.tensor(tokens.init_rows)
                weight[torch.tensor(tokens.model_rows)] = init_weight[init_rows].to(weight.device)
            else:
                weight.copy_(init_weight)


def _describe_copied_tokens(
    files: InitFiles, corpus: BinaryCorpus, tokens_by_side: Mapping[str, _SharedTokens]
) -> list[str]:
    """Return messages for the user: how many tokens of the model have got weights from the files.

    All other tokens start with random weights. If these are more than half of the source or target
    tokens, a second message warns of it: the vocabularies probably should be the same.

    Args:
        files: The files of the weights.
        corpus: The corpus of the training.
        tokens_by_side: The tokens that were copied, for `source` and for `target`.
    """
    counts: list[str] = []
    has_few_shared_tokens = False
    for side, tokens in tokens_by_side.items():
        token_kind = "tokens" if corpus.joint else f"{side} tokens"
        count = f"{tokens.shared_count:,} of {tokens.model_count:,} {token_kind} taken over"
        # A joint vocabulary has the same count on both sides, which is said only once.
        if count not in counts:
            counts.append(count)
        if 2 * tokens.shared_count < tokens.model_count:
            has_few_shared_tokens = True
    messages = [f"started from {files.name}: {', '.join(counts)}"]
    if has_few_shared_tokens:
        messages.append(
            "note: the vocabulary of these weights contains fewer than half of the tokens. "
            "Let the corpora share one vocabulary (setting vocabularies)"
        )
    return messages
