"""Training: from batches to averaged weights.

May import the packages from runtime to scoring; reports its progress to an observer.
"""
