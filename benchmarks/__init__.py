"""How fast, and against what: `python -m benchmarks` prints the table and writes results.json."""
