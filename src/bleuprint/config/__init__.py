"""params.yaml as frozen dataclasses, and the paths of the pipeline's files.

May import runtime, text and rules.
"""
