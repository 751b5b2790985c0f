"""From raw parallel text to clean parallel text, one module a stage.

May import runtime, text, rules and config.
"""
