"""What the stages of a corpus share: statistics, shards, and filtering in several processes."""
