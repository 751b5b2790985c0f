"""Translate a corpus's test sets in other ways, where published numbers ask for it."""

from bleuprint.allocator import keep_memory

keep_memory()

from bleuprint import command
from bleuprint.errors import run
from bleuprint.settings import load
from bleuprint.variants import vary


def main() -> None:
    vary(load(), command.cell(__doc__))


if __name__ == "__main__":
    run(main)
