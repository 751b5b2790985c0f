"""From batches to averaged weights.

May import the packages from runtime to scoring; reports to an observer, which it does not know.
"""
