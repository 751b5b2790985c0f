"""Put faults into the package, one at a time, and see which ones the tests catch."""
