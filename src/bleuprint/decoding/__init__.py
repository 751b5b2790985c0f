"""Search, and the stages that use it.

May import the packages from runtime to model.
"""
