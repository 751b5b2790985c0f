"""Infrastructure that decides no result: errors, files, processes, progress.

errors.py defines the errors that a user sees, and schema.py checks settings and records.

Imports no other package of bleuprint.
"""
