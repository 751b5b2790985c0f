"""`python -m bleuprint`: the command `bleuprint`."""

from bleuprint.cli.main import main

main()
