"""What a training starts from; part of the settings in `system.py`."""

from dataclasses import dataclass

from bleuprint.runtime.schema import Name, Sha256


@dataclass(frozen=True)
class Start:
    """Where the first weights of a training come from; optimizer and schedule begin at update 1.

    `system` and `corpus`: the averaged model of this experiment's training of them with the same
    seed. Or `release`, a folder that `bleuprint release` wrote, of which `system` and `corpus`
    choose the model if it has several. Or `folder`: averaged/ or checkpoints/ of a cell's models.
    `sha256`: of a folder's weights; the stage resolve adds it.
    """

    system: Name | None = None
    corpus: Name | None = None
    release: str | None = None
    folder: str | None = None
    sha256: Sha256 | None = None

    def __post_init__(self) -> None:
        cell = self.system is not None and self.corpus is not None
        if sum((cell and not self.release, bool(self.release), bool(self.folder))) != 1:
            raise ValueError("needs system and corpus, a release, or a folder")
        if self.folder and (self.system or self.corpus):
            raise ValueError("a folder has one model: no system and corpus")

    @property
    def cell(self) -> tuple[str, str] | None:
        """The system and the corpus, if it is a training of this experiment."""
        given = self.system is not None and self.corpus is not None and not self.release
        return (str(self.system), str(self.corpus)) if given else None
