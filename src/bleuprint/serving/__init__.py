"""A trained system in use: translation, the server, exports, attention maps.

May import the packages from runtime to tracking.
"""
