"""Read the embedded corpus: English, German and French sentences, written by tools/phrasebook."""

import tarfile
from importlib import resources

TEXTS = "phrasebook.tar.xz"


def sentences(split: str, language: str) -> list[str]:
    """Read the phrasebook, the small corpus that is part of the package, in one language.

    Sentence n of all languages of a split translate each other.

    Args:
        split: `train`, `valid`, `test`, or `noisy`, which is the training text with faulty lines.
        language: `en`, `de` or `fr`.
    """
    archive_path = resources.files(__package__).joinpath(TEXTS)
    file_name = f"{split}.{language}"
    # The mode "r|xz" reads the archive as a stream, from its start to the wanted file.
    with archive_path.open("rb") as stream, tarfile.open(fileobj=stream, mode="r|xz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if member.name == file_name and content is not None:
                lines = content.read().decode().split("\n")
                return lines[:-1]  # Nothing follows the last line break.
    raise KeyError(file_name)
