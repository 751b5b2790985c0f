"""The Transformer: its modules, key-value cache, FLOP counts, and weight files.

May import runtime, text, rules, config, corpus and dataset.
"""
