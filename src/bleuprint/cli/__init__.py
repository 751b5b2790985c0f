"""The command line: `bleuprint COMMAND`; one module for each group of commands.

Start with main.py, which finds the command and runs it.

May import all packages.
"""
