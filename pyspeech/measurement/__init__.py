"""How long something takes, on which machine, and whether two such figures differ: what all benchmarks share."""
