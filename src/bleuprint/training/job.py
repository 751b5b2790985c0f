"""A training job: one run to train, with the files and the settings that it reads.

Nothing here imports torch, so that `bleuprint plan` can describe jobs without loading it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.config.system import System
from bleuprint.dataset.binarized import CORPUS, BinaryCorpus
from bleuprint.runtime.closure import code_fingerprint
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.training.init_weights import InitFiles, copy_init_weights, init_files

if TYPE_CHECKING:
    from bleuprint.model.transformer import Transformer


@dataclass(frozen=True)
class Job:
    """Everything that a training reads: its settings and its files.

    Attributes:
        run: The names of the system and the corpus, and the seed.
        system: The settings of the system.
        corpus_folder: The folder of the binarized corpus.
        split_folder: The folder of the text before tokenization, with the validation references.
        code_fingerprint: The fingerprint of the code that determines the result.
        init_files: The files of the first weights; None for random weights.
    """

    run: Run
    system: System
    corpus_folder: Path
    split_folder: Path
    code_fingerprint: str
    init_files: InitFiles | None = None

    def initialize(self, model: "Transformer", corpus: BinaryCorpus) -> list[str]:
        """Copy the weights that the training starts from into its model.

        Args:
            model: The model, which is changed.
            corpus: The corpus of the training.

        Returns:
            Messages for the user, one line each. Without `train.init_from` in the settings, the
            model keeps its random weights, and there is no message.

        Raises:
            UserError: The weights are damaged, or belong to another architecture.
        """
        if self.init_files is None:
            return []
        return copy_init_weights(model, corpus, self.init_files)

    def first_weights_fingerprint(self) -> str | None:
        """Return a hash of the weights that the training starts from; None if they are random."""
        if self.init_files is None:
            return None
        return self.init_files.fingerprint()

    def validation_references(self) -> list[Path]:
        """Return the files of the validation set's text, in the order of their names."""
        return sorted(self.split_folder.glob("valid.*"))

    def file_hashes(self, fingerprint_name: str) -> dict[str, str]:
        """Return the SHA-256 of each file on which one of the training's fingerprints depends.

        Fingerprints are hashes of the training's settings, code, data and first weights. If one of
        them has changed, so that the system must be trained again, the hashes of the files show
        which file is the cause.

        Args:
            fingerprint_name: `settings`, `code`, `data` or `start` (the first weights).

        Returns:
            The SHA-256 by path. It is empty for `settings` and `code`, which are not hashes of
            whole files.
        """
        if fingerprint_name == "data":
            return self._data_hashes()
        if fingerprint_name == "start" and self.init_files is not None:
            return self.init_files.hashes()
        return {}

    def _data_hashes(self) -> dict[str, str]:
        """Return the SHA-256 of each file of the corpus that a training reads, by its path.

        The order matters: messages name the first file whose hash has changed.
        """
        corpus = BinaryCorpus(self.corpus_folder)
        hashes = {}
        for name, sha256 in corpus.file_hashes.items():
            is_test_set = name.startswith("test.")  # A training reads no test set.
            if not is_test_set:
                hashes[str(self.corpus_folder / name)] = sha256
        for path in self.validation_references():
            hashes[str(path)] = sha256_of(path)
        # The header is last, because it contains the hashes of the other files: it changes whenever
        # one of them does, so it would hide which one.
        header = self.corpus_folder / CORPUS
        hashes[str(header)] = corpus.training_sha256
        return hashes


def job_for_run(run: Run, settings: Settings) -> Job:
    """Return everything that the training of a run reads: its settings and its files.

    A run is one system that is trained on one corpus with one seed.

    Args:
        run: The names of the system and the corpus, and the seed.
        settings: The settings of the experiment.

    Raises:
        UserError: The experiment has no such run, or files of its first weights are missing.
    """
    system = settings.system_on(run.system, run.corpus)
    settings.check_seed(run.seed)
    first_weights = None
    if system.train.init_from:
        first_weights = init_files(system.train.init_from, run)
    return Job(
        run=run,
        system=system,
        corpus_folder=corpus_folder(run.corpus, "binary"),
        split_folder=corpus_folder(run.corpus, "split"),
        code_fingerprint=code_fingerprint("train"),
        init_files=first_weights,
    )
