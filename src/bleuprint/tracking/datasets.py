"""Describe the sets of a corpus as datasets of MLflow runs, and say whether copies are allowed.

`describe_datasets` returns the datasets of a run, and `may_be_copied` says whether the translations
of a run may be copied to MLflow.
"""

import hashlib
from dataclasses import dataclass

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import corpus_folder
from bleuprint.config.references import Entry, needed_by
from bleuprint.dataset.binarized import CORPUS, BinaryCorpus, SetSize
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of

# MLflow takes at most 36 characters of a digest.
_DIGEST_CHARACTERS = 16
# What MLflow calls the uses of a dataset; all other sets are test sets.
_CONTEXTS = {"train": "training", "valid": "validation"}
# Texts with these URLs are part of this package and under its license, Apache-2.0.
_OWN_TEXT = "phrasebook:"


@dataclass(frozen=True)
class DatasetFacts:
    """A set of a binarized corpus, as MLflow describes a dataset.

    Attributes:
        name: The name of the corpus and the set, such as `news-en-de train`.
        digest: The first characters of the SHA-256 of the set's token ids.
        context: What the set is used for: training, validation or testing.
        uri: The folder of the binarized corpus.
        size: The size of the set.
    """

    name: str
    digest: str
    context: str
    uri: str
    size: SetSize


def describe_datasets(corpus: str, data_sha256: str) -> tuple[DatasetFacts, ...]:
    """Describe the sets of a corpus with which a system was trained.

    Args:
        corpus: The name of the corpus.
        data_sha256: The fingerprint of the training data, `data` in training.json.

    Returns:
        One description per set. It is empty if the corpus is not on disk or is damaged, or if it
        has changed since the training.
    """
    binary_folder = corpus_folder(corpus, "binary")
    if not (binary_folder / CORPUS).exists():
        return ()
    # The fingerprint also covers the validation set as text, with which validation computes BLEU.
    validation_files = sorted(corpus_folder(corpus, "split").glob("valid.*"))
    try:
        binary_corpus = BinaryCorpus(binary_folder)
        validation_hashes = [sha256_of(path) for path in validation_files]
    except (UserError, OSError):
        return ()
    present_data = fingerprint.of_settings(binary_corpus.training_sha256, *validation_hashes)
    if present_data != data_sha256:
        return ()
    datasets = []
    for set_name, size in binary_corpus.sets.items():
        dataset = DatasetFacts(
            name=f"{corpus} {set_name}",
            digest=_digest(set_name, binary_corpus.file_hashes),
            context=_CONTEXTS.get(set_name, "testing"),
            uri=str(binary_folder),
            size=size,
        )
        datasets.append(dataset)
    return tuple(datasets)


def _digest(set_name: str, file_hashes: dict[str, str]) -> str:
    """Return the digest of a set.

    Args:
        set_name: The name of the set.
        file_hashes: The SHA-256 of each file of the binarized corpus, by its name SET.SIDE.
    """
    digest = hashlib.sha256()
    for file_name, file_sha256 in sorted(file_hashes.items()):
        if file_name.startswith(f"{set_name}."):
            digest.update(f"{file_name} {file_sha256}\n".encode())
    return digest.hexdigest()[:_DIGEST_CHARACTERS]


def may_be_copied(settings: Settings, system: str, corpus: str) -> bool:
    """Return whether the translations of a run may be copied to MLflow, whose users see them.

    A `license` in corpora/ is a sentence for people, and none says that copies are allowed. So only
    the text that is part of this package may be copied. Every text of the corpus must be part of
    it, and also every text of the corpora that the run depends on: for synthetic text, for its
    first weights or for its vocabulary. First weights from another project may come from any text.

    Args:
        settings: The settings of the experiment.
        system: The system of the run.
        corpus: The corpus of the run.
    """
    entries = needed_by(Entry(corpus, system), settings.references())
    for entry in entries:
        is_of_another_project = entry.folder != ""
        if is_of_another_project or not _is_own_text(settings, entry.corpus):
            return False
    return True


def _is_own_text(settings: Settings, corpus: str) -> bool:
    """Return whether all files of a corpus are part of this package."""
    for file in settings.corpus(corpus).files.files_by_name().values():
        if file.url is None or not file.url.startswith(_OWN_TEXT):
            return False
    return True
