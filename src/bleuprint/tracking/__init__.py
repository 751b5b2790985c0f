"""MLflow, hardware and durations: views of a training that decide nothing of it.

May import the packages from runtime to training.
"""
