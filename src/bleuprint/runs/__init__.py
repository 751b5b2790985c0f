"""What the stages leave of each run, opened and checked by one class.

Start with results.py. May import the packages from runtime to training.
"""
