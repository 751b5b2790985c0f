"""Scores of papers beside ours, and what explains the difference."""
