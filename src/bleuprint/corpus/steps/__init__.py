"""What the stages of a corpus share: ledgers, shards, and filtering pairs in several processes."""
