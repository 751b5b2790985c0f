"""Tokens to ids and back: BPE, vocabularies, segmentation."""
