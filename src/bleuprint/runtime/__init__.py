"""How work is run, shown and named, never what comes out: errors, files, processes, progress.

Imports no other package of bleuprint.
"""
