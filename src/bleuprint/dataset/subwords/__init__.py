"""Words to token ids and back: byte-pair encoding, vocabularies, and the segmentation of a line.

Start with segmentation.py, which uses bpe.py and vocabulary.py.
"""
