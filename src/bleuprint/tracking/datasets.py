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
from bleuprint.runtime.regular_files import sha256_of

# MLflow takes at most 36 characters of a digest.
_DIGEST_CHARACTERS = 16
# What MLflow calls the uses of a dataset; all other sets are test sets.
_CONTEXTS = {"train": "training", "valid": "validation"}
# Texts with these URLs are part of this package and under its license, Apache-2.0.
_URL_OF_PACKAGE = "phrasebook:"


@dataclass(frozen=True)
class DatasetDescription:
    """A set of a binarized corpus, such as its training set, as MLflow describes a dataset.

    Attributes:
        name: The name of the corpus and the set, such as `news-en-de train`.
        digest: The first characters of a SHA-256 of the set's token ids.
        context: What the set is used for: training, validation or testing.
        uri: The folder of the binarized corpus.
        size: The size of the set.
    """

    name: str
    digest: str
    context: str
    uri: str
    size: SetSize


def describe_datasets(corpus: str, data_sha256: str) -> tuple[DatasetDescription, ...]:
    """Describe the sets of a corpus with which a system was trained, for its MLflow run.

    The sets are read from disk, so they must still be the data of the training.

    Args:
        corpus: The name of the corpus.
        data_sha256: The fingerprint of the training data, as recorded when the system was trained.

    Returns:
        One description per set. It is empty if the corpus is not on disk or is damaged, or if it
        has changed since the training.
    """
    binary_folder = corpus_folder(corpus, "binary")
    if not (binary_folder / CORPUS).exists():
        return ()  # For example, only the results were downloaded.
    # The fingerprint also covers the text of the validation set, from which BLEU is computed.
    validation_files = sorted(corpus_folder(corpus, "split").glob("valid.*"))
    try:
        binary_corpus = BinaryCorpus(binary_folder)
        validation_hashes = [sha256_of(path) for path in validation_files]
    except (UserError, OSError):
        return ()  # A file is damaged or was removed.
    sha256_on_disk = fingerprint.of_settings(binary_corpus.training_sha256, *validation_hashes)
    if sha256_on_disk != data_sha256:
        return ()  # The corpus has changed since the training.
    datasets = []
    # The sets are `train`, `valid` and the test sets.
    for set_name, size in binary_corpus.sets.items():
        dataset = DatasetDescription(
            name=f"{corpus} {set_name}",
            digest=_set_digest(set_name, binary_corpus.file_hashes),
            context=_CONTEXTS.get(set_name, "testing"),
            uri=str(binary_folder),
            size=size,
        )
        datasets.append(dataset)
    return tuple(datasets)


def _set_digest(set_name: str, file_hashes: dict[str, str]) -> str:
    """Return one short hash of all files of a set, which changes if the data changes.

    MLflow shows it, so that users see which runs used the same data.

    Args:
        set_name: The name of the set, such as `train`.
        file_hashes: The SHA-256 of each file of the binarized corpus by the file's name, such as
            `train.en.ids`.
    """
    digest = hashlib.sha256()
    for file_name, file_sha256 in sorted(file_hashes.items()):
        if file_name.startswith(f"{set_name}."):
            digest.update(f"{file_name} {file_sha256}\n".encode())
    return digest.hexdigest()[:_DIGEST_CHARACTERS]


def may_be_copied(settings: Settings, system: str, corpus: str) -> bool:
    """Return whether a system's translations may be copied to MLflow, as far as licenses go.

    A copy on an MLflow server is a publication. This program does not read the licenses of
    downloaded texts, which may forbid it. So copies are allowed only if all texts that have shaped
    the translations are part of this package: the texts of the corpus, and the texts of every
    corpus from which the system takes synthetic text, its vocabulary or its first weights.

    Args:
        settings: The settings of the experiment.
        system: The name of the system.
        corpus: The name of the corpus that it is trained on.
    """
    # The system on this corpus, and all corpora and systems that it needs, directly or indirectly.
    entries = needed_by(Entry(corpus, system), settings.references())
    for entry in entries:
        # An entry with a folder is a model of another project, which may be trained on any text.
        is_of_another_project = entry.folder != ""
        if is_of_another_project or not _is_text_of_package(settings, entry.corpus):
            return False
    return True


def _is_text_of_package(settings: Settings, corpus: str) -> bool:
    """Return whether all texts of a corpus are part of this package, by their URLs."""
    files = settings.corpus(corpus).files
    for file in files.files_by_name().values():
        if file.url is None or not file.url.startswith(_URL_OF_PACKAGE):
            return False
    return True
