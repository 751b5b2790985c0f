"""Training: from batches of token ids to averaged weights.

Read trainer.py first: it runs one training. train_step.py computes one update, data_loader.py reads
the batches, loss.py computes the loss, validation.py the validation metrics, checkpoint.py saves
and restores. job.py and fingerprints.py say what a training is; averaging.py averages its
checkpoints.

May import the packages from runtime to scoring; reports its progress to an observer.
"""
