"""Text: parallel files, Unicode, tokenizers.

parallel.py reads and writes parallel files; tokenizers.py lists the tokenizers.

May import runtime.
"""
