"""The project's root."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
