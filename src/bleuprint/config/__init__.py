"""params.yaml as frozen dataclasses, and the paths of what the pipeline writes.

May import runtime, text and rules.
"""
