"""Translating with a trained model: beam search, sampling, and the stages that use them.

Start with translate.py, the stage. engine.py translates many sentences in batches, and
beam_search.py finds their best translations.

May import the packages from runtime to model.
"""
