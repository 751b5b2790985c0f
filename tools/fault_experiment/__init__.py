"""The parts of the fault experiment, which __main__ describes.

`faults` lists the faults that can be put into a file, `drawing` spreads the draw over the packages,
`selection` chooses the tests for a fault, `clone` runs these tests, `results` keeps and prints what
they said, and `experiment` uses all of them in turn.
"""
