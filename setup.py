"""Builds the native functions; pyproject.toml says all else.

Beside the library its SHA-256 is written, so that a library that is cut, or was built elsewhere, is
not loaded (src/bleuprint/native/__init__.py).
"""

import hashlib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext


class BuildWithChecksum(build_ext):
    """Builds the extension, which is optional, and writes LIBRARY.sha256 beside it."""

    def run(self):
        """Build; a build for an editable install that fails must not leave an older library."""
        if self.inplace:
            for ext in self.extensions:
                self._in_source(ext).unlink(missing_ok=True)
        super().run()

    def build_extension(self, ext):
        """Build one library, with its checksum."""
        super().build_extension(ext)
        _write_checksum(Path(self.get_ext_fullpath(ext.name)))

    def copy_extensions_to_source(self):
        """Copy what was built for an editable install."""
        super().copy_extensions_to_source()
        for ext in self.extensions:
            _write_checksum(self._in_source(ext))

    def _in_source(self, ext):
        """Return the path of the library in src/, beside the package."""
        package = Path(self.get_finalized_command("build_py").get_package_dir("bleuprint"))
        return package.parent / self.get_ext_filename(ext.name)


def _write_checksum(library):
    checksum = library.with_name(f"{library.name}.sha256")
    checksum.unlink(missing_ok=True)
    if library.exists():
        checksum.write_text(f"{hashlib.sha256(library.read_bytes()).hexdigest()}\n")


setup(cmdclass={"build_ext": BuildWithChecksum})
