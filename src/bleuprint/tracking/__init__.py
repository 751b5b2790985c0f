"""MLflow, hardware and durations: views of a training, which its result does not depend on.

Start with training_log.py, which follows a training, or with sync.py, which logs finished ones.

May import the packages from runtime to training.
"""
