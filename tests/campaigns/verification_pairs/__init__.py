"""Pairs of models that compute the same, or do not, to measure `ortscan.verify` by: run with ``python -m tests.campaigns verification_pairs``."""
