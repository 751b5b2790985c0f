"""Words to token ids and back: BPE, vocabularies, segmentation."""
