"""Where the pipeline keeps a corpus, relative to the project's root."""

from pathlib import Path

_DATA = Path("data")


def folder(corpus: str, stage: str) -> Path:
    """The folder of a corpus: raw, clean, dedup, filter, split, tokens, bpe or binary."""
    return _DATA / corpus / stage


def codes(corpus: str) -> Path:
    """The merges that learn_bpe found."""
    return folder(corpus, "bpe") / "codes"


def ledger(corpus: str, stage: str) -> Path:
    """The account that a data stage gives of itself."""
    return _DATA / "ledgers" / corpus / f"{stage}.json"
