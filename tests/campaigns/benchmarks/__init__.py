"""Timings, never part of pass or fail: `python -m tests.campaigns benchmarks`."""
