"""Train one system on one corpus with one seed."""

from bleuprint.allocator import keep_memory

keep_memory()

from bleuprint import command
from bleuprint.errors import run
from bleuprint.training import train_cell

if __name__ == "__main__":
    run(lambda: train_cell(command.cell(__doc__)))
