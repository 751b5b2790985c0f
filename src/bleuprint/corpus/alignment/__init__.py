"""Sentence alignment: documents in two languages to pairs of their sentences."""
