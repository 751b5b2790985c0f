"""The versions of the libraries that decide tokens, weights, translations and scores."""

from importlib.metadata import PackageNotFoundError, version

_LIBRARIES = ("torch", "sacrebleu", "sacremoses", "subword-nmt", "ctranslate2")


def versions() -> str:
    """torch 2.13.0, sacrebleu 2.6.0, ...: those that are installed."""
    return ", ".join(filter(None, map(_version, _LIBRARIES)))


def _version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""
