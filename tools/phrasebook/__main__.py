"""Write the package's file of all texts: python -m tools.phrasebook, from the project's folder."""

import io
import lzma
import tarfile
from pathlib import Path

from tools.phrasebook.splits import LANGUAGES, NOISY, SPLITS, sentences

TEXTS = Path("src", "bleuprint", "corpus", "phrasebook", "phrasebook.tar.xz")


def main() -> None:
    """Write the file."""
    TEXTS.write_bytes(lzma.compress(archive(), preset=9 | lzma.PRESET_EXTREME))


def archive() -> bytes:
    """Return a tar archive of all texts, such as train.en.

    All texts of a language are next to each other. The text with faults repeats the training text,
    and xz compresses repetitions well only if they are near.
    """
    content = io.BytesIO()
    # A format without user names and times, so that the bytes depend on the texts only.
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for language in LANGUAGES:
            for split in (*SPLITS, NOISY):
                text = "".join(f"{line}\n" for line in sentences(split, language))
                text_bytes = text.encode()
                member = tarfile.TarInfo(f"{split}.{language}")
                member.size = len(text_bytes)
                tar.addfile(member, io.BytesIO(text_bytes))
    return content.getvalue()


if __name__ == "__main__":
    main()
