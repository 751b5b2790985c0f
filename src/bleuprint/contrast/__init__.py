"""Contrastive tests: does a model give the right translation a higher probability than a wrong one?

As Sennrich (2017), "How Grammatical is Character-level Neural Machine Translation? Assessing MT
Quality with Contrastive Translation Pairs", and LingEval97.
"""
