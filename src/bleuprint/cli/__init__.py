"""The command line: `bleuprint COMMAND`; one module for each group of commands.

May import all packages.
"""
