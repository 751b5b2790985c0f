"""What the stages leave of each run, opened and checked by one class.

Order of the packages: pyproject.toml, importlinter.
"""
