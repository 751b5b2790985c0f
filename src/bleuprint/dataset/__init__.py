"""Clean text to batches of token ids: vocabularies, binary files, batches.

learn_vocabulary.py learns how words are split (subwords/ splits them), binarize.py writes a corpus
as token ids, and binarized.py reads it. batching.py plans which sentences form a batch; batch.py
and packed_batch.py make its tensors.

May import runtime, text, rules, config and corpus.
"""
