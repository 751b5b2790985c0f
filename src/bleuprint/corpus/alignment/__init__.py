"""Sentence alignment: documents in two languages to pairs of their sentences.

Start with align.py, which aligns in two passes. lattice.py searches the best alignment.
"""
