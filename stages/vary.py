"""Translate a corpus's test sets in other ways, where published numbers ask for it."""

from bleuprint.runtime.malloc import keep_memory

keep_memory()

from bleuprint.config.experiment import load
from bleuprint.pipeline import stage_args
from bleuprint.report.published.variants import vary
from bleuprint.runtime.errors import run


def main() -> None:
    vary(load(), stage_args.cell(__doc__))


if __name__ == "__main__":
    run(main)
