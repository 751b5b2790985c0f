"""Programs that make files of the project; none of them is needed to run it."""
