"""The command line: `bleuprint COMMAND`.

May import all packages.
"""
