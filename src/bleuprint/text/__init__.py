"""Text: parallel files, Unicode, tokenizers.

May import runtime.
"""
