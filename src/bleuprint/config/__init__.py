"""params.yaml as frozen dataclasses, and the paths of the pipeline's files.

Start with experiment.py: `load_settings` reads params.yaml, and `Settings` is the whole experiment.
corpus.py and system.py are its largest parts. entries.py and inherit.py fill in what entries take
from other entries; paths.py names the files of the pipeline.

May import runtime, text and rules.
"""
