"""COMET, a neural metric of translations, in an environment of its own.

Order of the packages: pyproject.toml, importlinter.
"""
