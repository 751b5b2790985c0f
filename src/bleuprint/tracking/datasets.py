"""Datasets of MLflow runs: the sets of a corpus, and whether its translations may be copied."""

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
    """A set of a binarized corpus, such as `news-en-de train`.

    `digest` begins the SHA-256 of the set's token ids. `context` is MLflow's word for what the set
    is used for: training, validation or testing. `uri` is the folder of the binarized corpus.
    """

    name: str
    digest: str
    context: str
    uri: str
    size: SetSize


def datasets_of(corpus: str, data_sha256: str) -> tuple[DatasetFacts, ...]:
    """Describe the sets of a corpus.

    Args:
        corpus: The name of the corpus.
        data_sha256: The fingerprint of a training's data, `data` in training.json.

    Returns:
        One entry for each set; none if the corpus is not on disk, is damaged, or is not the corpus
        of that training any more.
    """
    binary = corpus_folder(corpus, "binary")
    if not (binary / CORPUS).exists():
        return ()
    references = sorted(corpus_folder(corpus, "split").glob("valid.*"))
    try:
        opened = BinaryCorpus(binary)
        reference_sums = [sha256_of(path) for path in references]
    except (UserError, OSError):
        return ()
    if fingerprint.of_settings(opened.training_sha256, *reference_sums) != data_sha256:
        return ()
    return tuple(
        DatasetFacts(
            name=f"{corpus} {set_name}",
            digest=_digest(set_name, opened.file_hashes),
            context=_CONTEXTS.get(set_name, "testing"),
            uri=str(binary),
            size=size,
        )
        for set_name, size in opened.sets.items()
    )


def _digest(set_name: str, file_hashes: dict[str, str]) -> str:
    """The digest of a set, from the SHA-256 of each file of the corpus."""
    digest = hashlib.sha256()
    for name, file_sha256 in sorted(file_hashes.items()):
        if name.startswith(f"{set_name}."):
            digest.update(f"{name} {file_sha256}\n".encode())
    return digest.hexdigest()[:_DIGEST_CHARACTERS]


def may_be_copied(settings: Settings, system: str, corpus: str) -> bool:
    """Return whether translations may become artifacts, which a server shows to others.

    A `license` in corpora/ is a sentence for people, and none says that copies are allowed. So only
    the text that is part of this package counts: every text of the corpus must be of it, and also
    of each corpus whose systems translated its texts, trained the first weights or gave it a
    vocabulary. First weights from another project may contain any text.
    """
    entries = needed_by(Entry(corpus, system), settings.references())
    for entry in entries:
        is_of_another_project = entry.folder != ""
        if is_of_another_project or not _is_own_text(settings, entry.corpus):
            return False
    return True


def _is_own_text(settings: Settings, corpus: str) -> bool:
    """Whether all files of a corpus are part of this package."""
    for file in settings.corpus(corpus).files.files_by_name().values():
        if file.url is None or not file.url.startswith(_OWN_TEXT):
            return False
    return True
