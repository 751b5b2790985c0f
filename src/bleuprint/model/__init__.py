"""The Transformer: its modules, key-value cache, FLOP counts, and weight files.

Start with transformer.py. May import runtime, text, rules, config, corpus and dataset.
"""
