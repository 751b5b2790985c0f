"""The embedded corpus: English, German and French sentences, made by tools/phrasebook."""

import tarfile
from importlib import resources

TEXTS = "phrasebook.tar.xz"


def sentences(split: str, language: str) -> list[str]:
    """The lines of `train`, `valid`, `test`, or `noisy` (train with faults) in `en`, `de` or `fr`.

    Lines of equal number are parallel.
    """
    packed = resources.files(__package__).joinpath(TEXTS)
    with packed.open("rb") as stream, tarfile.open(fileobj=stream, mode="r|xz") as archive:
        text = next(file for file in archive if file.name == f"{split}.{language}")
        content = archive.extractfile(text)
        assert content
        return content.read().decode().split("\n")[:-1]
