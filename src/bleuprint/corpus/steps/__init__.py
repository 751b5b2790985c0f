"""What the stages of a corpus share: statistics, shards, and filtering in several processes.

Start with sharded.py, which runs a stage on a training text, as a whole or in shards.
"""
