"""Clean text to batches of token ids: vocabularies, binary files, batches.

May import runtime, text, rules, config and corpus.
"""
