"""From clean text to batches of ids: vocabularies, binary files, batches.

May import runtime, text, rules, config and corpus.
"""
