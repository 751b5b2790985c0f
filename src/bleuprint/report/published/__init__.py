"""Published scores, which tables show above the scores of an experiment."""
