"""Writes the package's file of all texts: python -m tools.phrasebook, from the project's folder."""

import io
import lzma
import tarfile
from pathlib import Path

from tools.phrasebook.splits import LANGUAGES, NOISY, SPLITS, sentences

TEXTS = Path("src", "bleuprint", "corpus", "phrasebook", "phrasebook.tar.xz")


def main() -> None:
    TEXTS.write_bytes(lzma.compress(archive(), preset=9 | lzma.PRESET_EXTREME))


def archive() -> bytes:
    """All texts as a tar archive; a text beside the one it resembles, which compresses best."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as files:
        for language in LANGUAGES:
            for split in (*SPLITS, NOISY):
                text = "".join(f"{line}\n" for line in sentences(split, language)).encode()
                member = tarfile.TarInfo(f"{split}.{language}")
                member.size = len(text)
                files.addfile(member, io.BytesIO(text))
    return content.getvalue()


if __name__ == "__main__":
    main()
