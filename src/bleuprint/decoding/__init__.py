"""Search, and the engines and stages that drive it.

May import the packages from runtime to model.
"""
