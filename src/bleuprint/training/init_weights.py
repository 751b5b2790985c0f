"""The weights that a training starts from: their files, and how a model takes them over.

Torch is loaded only to take weights over: other stages use the files without it in a tenth of the
time.
"""

import dataclasses
from collections.abc import Iterator, Mapping
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
from bleuprint.runtime.files import DamagedFile, read_json_object, report_as_damage, sha256_of

if TYPE_CHECKING:
    from bleuprint.model.transformer import Transformer

# The weights with a row for each token, by the side of their vocabulary.
_ROWS = {
    "source_embedding.weight": "source",
    "target_embedding.weight": "target",
    "projection.weight": "target",
    "projection.bias": "target",
}
_WEIGHTS = "model.safetensors"
_REMEDY = "get an intact copy of its folder"


@dataclass(frozen=True)
class InitFiles:
    """Weights, beside model.json that describes them; `name`: of the start, for messages."""

    name: str
    weights: Path

    def description(self) -> ModelDescription:
        """The content of model.json; raises UserError if it is damaged."""
        return ModelDescription.read(self.weights.parent, _REMEDY)

    def fingerprint(self) -> str:
        """That of weights and vocabularies."""
        vocabularies = dataclasses.asdict(self.description().vocabularies)
        return fingerprint.of_settings(sha256_of(self.weights), vocabularies)

    def hashes(self) -> dict[str, str]:
        """The SHA-256 of weights and description, by path."""
        files = (self.weights, self.weights.with_name(DESCRIPTION))
        return {str(path): sha256_of(path) for path in files}

    def vocabulary(self, side: str) -> Path:
        """The vocabulary of a side, by its SHA-256 in model.json.

        It is beside the weights, or in the project that has them as models/SYSTEM/CORPUS/SEED/*.
        Raises UserError if it is in neither.
        """
        vocabularies = self.description().vocabularies
        expected = vocabularies.source if side == "source" else vocabularies.target
        folder = self.weights.parent
        binary = paths.corpus_folder(folder.parent.parent.name, "binary", folder / "../../../../..")
        for place in (folder, binary / SEGMENTATION):
            for path in sorted(place.glob("vocabulary.*")):
                if sha256_of(path) == expected.sha256:
                    return path
        raise UserError(f"{folder}: no vocabulary.* here is that of the {side} in {DESCRIPTION}")


def init_files(start: InitFrom, run: Run) -> InitFiles:
    """Return the files of a run's start.

    Raises:
        UserError: They are missing or not those expected; names the line of params.yaml that names
            their folder.
    """
    if start.parent:
        return _files_of(start, run, init_weights_folder(run.system, run.seed))
    try:
        return _files_of(start, run, environment.project_root() / str(start.folder))
    except UserError as error:
        keys = ["runs", run.system, run.corpus, "train", "init_from", "folder"]
        raise place_of_setting(keys).error(str(error)) from None


def _files_of(start: InitFrom, run: Run, folder: Path) -> InitFiles:
    """Return the files of a start that are in a folder."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; {run.system} starts there (init_from)")
    if len(models := sorted(folder.glob("models/*/*/*/averaged"))) > 1:  # of a release
        raise UserError(f"{folder}: has {len(models)} models: name one, such as {models[0]}")
    (folder,) = models or [folder]
    by_update = {int(path.stem): path for path in _numbered(folder)}
    newest_first = [by_update[update] for update in sorted(by_update, reverse=True)]
    weights = [path for path in [folder / _WEIGHTS, *newest_first] if path.is_file()]
    if not weights or not (folder / DESCRIPTION).is_file():
        raise UserError(f"{folder}: no {_WEIGHTS} or UPDATE.safetensors with {DESCRIPTION}")
    files = InitFiles(" ".join(start.parent or [str(start.folder)]), weights[0])
    for side in ("source", "target"):
        files.vocabulary(side)
    _check_sums(files.weights, folder / DESCRIPTION)
    if files.weights.name == _WEIGHTS:
        check_bytes(files.weights, files.description().weights_sha256)
    if start.sha256 and (found := sha256_of(files.weights)) != start.sha256:
        raise UserError(f"{files.weights}: not the SHA-256 in train.init_from: {found}")
    return files


def _numbered(folder: Path) -> Iterator[Path]:
    """Yield the weights in a folder that are named by their update."""
    for path in folder.glob("*.safetensors"):
        if path.stem.isdecimal():
            yield path


def add_weight_hashes(runs: Mapping[str, Mapping[str, Any]], root: Path = Path()) -> None:
    """Add to each start from a folder the SHA-256 of its weights, which DVC compares.

    Of a folder that is not here, as in a clone that has the results, it stays the recorded one.
    `runs`: as in reports/resolved.json. Raises UserError as `init_files` does.
    """
    known: dict[str, str] = {}
    with (
        suppress(UserError),
        report_as_damage(path := root / RESOLVED),
    ):  # it may have conflict markers
        before = _from_folders(read_json_object(path, ("runs",))["runs"])
        known = {given["folder"]: given["sha256"] for _, given in before}
    for run, given in _from_folders(runs):
        if given["folder"] in known and not (environment.project_root() / given["folder"]).exists():
            given["sha256"] = known[given["folder"]]
        else:
            given["sha256"] = sha256_of(init_files(InitFrom(**given), run).weights)


def _from_folders(runs: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[Run, dict[str, Any]]]:
    """The runs that start from a folder, and their `train.init_from`."""
    for system, row in runs.items():
        for corpus, run in row.items():
            if run["train"] and "folder" in (given := run["train"].get("init_from", {})):
                yield Run(system, corpus, 0), given


def _check_sums(*files: Path) -> None:
    """Raise UserError if one is not as the SHA256SUMS of a release, in a folder above it, says."""
    above = (folder for folder in files[0].parents if (folder / CHECKSUM_FILE).is_file())
    folder = next(above, None)
    if folder is None:
        return
    is_release = (folder / "reports").is_dir()
    try:
        sums = read_checksums(folder / CHECKSUM_FILE)
    except UserError:
        if is_release:
            raise
        return  # a list of other files, maybe with other hashes
    for path in files:
        expected = sums.get(path.relative_to(folder).as_posix())
        if expected is None and is_release:
            raise DamagedFile(folder / CHECKSUM_FILE, f"no line lists {path}", _REMEDY)
        if expected not in (None, sha256_of(path)):
            raise DamagedFile(path, f"its SHA-256 is not the one in {CHECKSUM_FILE}", _REMEDY)


def take_weights(model: "Transformer", corpus: BinaryCorpus, start: InitFiles) -> list[str]:
    """Copy weights into a model, rows of tokens by token.

    Tokens that the start does not know keep what the model has for them.

    Args:
        model: The model, which is changed.
        corpus: The corpus that the model is trained on.
        start: The files of the weights.

    Returns:
        What to say of it, a line each.

    Raises:
        UserError: The start is of another architecture, damaged, or without its vocabularies.
    """
    import torch

    from bleuprint.model.weights import named_weights, read_weights

    difference = model.settings.difference(start.description().model)
    if difference:
        path = start.weights.with_name(DESCRIPTION)
        raise UserError(f"{path}: another architecture: {difference}")
    rows: dict[str, list[tuple[int, int]]] = {}
    sizes: dict[str, int] = {}
    taken: dict[str, None] = {}
    few = False
    for side, language in (("source", corpus.source), ("target", corpus.target)):
        here = corpus.segmentation(language).vocabulary
        there = Vocabulary.read(start.vocabulary(side))
        rows[side] = _shared_rows(here, there)
        sizes[side] = len(there)
        count = len(rows[side]) - len(SPECIALS)
        size = len(here) - len(SPECIALS)
        what = "tokens" if corpus.joint else f"{side} tokens"
        taken[f"{count:,} of {size:,} {what} taken over"] = None  # once of a joint vocabulary
        few |= 2 * count < size
    weights = named_weights(model)
    shapes = {}
    for name, weight in weights.items():
        shape = list(weight.shape)
        if name in _ROWS:
            shape[0] = sizes[_ROWS[name]]
        shapes[name] = shape
    with torch.no_grad():
        for name, tensor in read_weights(start.weights, shapes).items():
            if name in _ROWS:
                to, of = torch.tensor(rows[_ROWS[name]]).T
                weights[name][to] = tensor[of].to(weights[name].device)
            else:
                weights[name].copy_(tensor)
    said = [f"started from {start.name}: {', '.join(taken)}"]
    if few:
        said.append("note: the start knows fewer than half of the tokens (see vocabularies)")
    return said


def _shared_rows(here: Vocabulary, there: Vocabulary) -> list[tuple[int, int]]:
    """The rows of each token in both; special tokens have the same in every vocabulary."""
    first = len(SPECIALS)
    rows = {token: row for row, token in enumerate(there.tokens) if row >= first}
    known = (token for token in enumerate(here.tokens) if token[0] >= first and token[1] in rows)
    return [(row, row) for row in range(first)] + [(row, rows[token]) for row, token in known]
