"""Measurements: `python -m benchmarks.train NAME` and its siblings write results/*.json."""
