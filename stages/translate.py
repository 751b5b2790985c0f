"""Translate a corpus's test sets with an averaged model."""

from bleuprint.allocator import keep_memory

keep_memory()

from bleuprint import command
from bleuprint.attentionmap import ATTENTION
from bleuprint.errors import run
from bleuprint.layout import folder
from bleuprint.settings import load
from bleuprint.translate import translate_tests


def main() -> None:
    cell = command.cell(__doc__)
    translate_tests(
        folder(cell.corpus, "binary"),
        cell.models / "averaged",
        load().system(cell.system).decode,
        cell.results / "hypotheses",
        cell.results / "translation.json",
        cell.results / ATTENTION,
        cell.timings / "translate.json",
    )


if __name__ == "__main__":
    run(main)
