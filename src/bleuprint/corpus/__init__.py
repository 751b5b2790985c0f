"""From raw parallel text to clean parallel text, one module a stage.

The stages, in their order, are download/, clean.py, dedup.py, filter.py, split.py and tokenize.py.
steps/ contains what they share. The other modules serve commands such as inspect and new-corpus.

May import runtime, text, rules and config.
"""
