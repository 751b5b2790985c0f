"""A trained system in use: translation, the server, exports, attention maps.

Start with translator.py, which translates any sentences.

May import the packages from runtime to tracking.
"""
