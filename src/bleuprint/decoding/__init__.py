"""Search, and the engines and stages that use it.

May import the packages from runtime to model.
"""
