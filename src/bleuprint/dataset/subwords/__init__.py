"""Words to token ids and back: byte-pair encoding, vocabularies, and the segmentation of a line."""
