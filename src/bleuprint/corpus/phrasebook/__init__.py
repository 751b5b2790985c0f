"""Read the embedded corpus: English, German and French sentences, written by tools/phrasebook."""

import tarfile
from importlib import resources

TEXTS = "phrasebook.tar.xz"


def sentences(split: str, language: str) -> list[str]:
    """Return the sentences of a split in one language. Line n is parallel in all languages.

    Args:
        split: `train`, `valid`, `test`, or `noisy`, which is the training text with faulty lines.
        language: `en`, `de` or `fr`.
    """
    archive_path = resources.files(__package__).joinpath(TEXTS)
    with archive_path.open("rb") as stream, tarfile.open(fileobj=stream, mode="r|xz") as archive:
        member = next(file for file in archive if file.name == f"{split}.{language}")
        content = archive.extractfile(member)
        assert content
        lines = content.read().decode().split("\n")
    # The last line ends in a line break, after which there is nothing.
    return lines[:-1]
