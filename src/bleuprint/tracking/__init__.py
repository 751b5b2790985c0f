"""MLflow, hardware and durations: views of a training, which its result does not depend on.

May import the packages from runtime to training.
"""
