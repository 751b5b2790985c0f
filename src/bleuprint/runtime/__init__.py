"""Infrastructure that decides no result: errors, files, processes, progress.

Imports no other package of bleuprint.
"""
