"""What the stages of a corpus share: filtering statistics, shards, and filtering pairs in several processes."""
