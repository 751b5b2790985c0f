"""The Transformer: its modules, its key-value cache, its FLOPs, and its weights as files.

May import runtime, text, rules, config, corpus and dataset.
"""
