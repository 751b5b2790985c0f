"""Sentence alignment: documents in two languages to pairs of sentences that translate each other."""
