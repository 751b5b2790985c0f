"""The stage download: files from URLs, archives and local folders, in any published format.

Start with download.py, the stage. fetch.py gets a file, archive.py opens it, and formats/ reads its
sentence pairs.
"""
