"""Published scores in comparison with ours, and the causes of the difference."""
