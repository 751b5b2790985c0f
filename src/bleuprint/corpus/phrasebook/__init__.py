"""The embedded parallel corpus: English, German and French, written by a synchronous grammar."""

from bleuprint.corpus.phrasebook.splits import LANGUAGES, SPLITS, generate, sentences

__all__ = ["LANGUAGES", "SPLITS", "generate", "sentences"]
