"""How fast RUM is: `python -m tests.bench.bench`."""
