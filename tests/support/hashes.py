"""The hash of a folder."""

import hashlib

from bleuprint.runtime.files import sha256_of


def sha256_of_folder(folder):
    """The SHA-256 of the names and contents of all files in a folder except hidden ones."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder)
        if file.is_file() and not any(part.startswith(".") for part in name.parts):
            digest.update(f"{name.as_posix()}\0{sha256_of(file)}\n".encode())
    return digest.hexdigest()
