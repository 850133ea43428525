"""Execution providers other than the CPU's, run: what they take of models before and after ``optimize``, and what single operators come to."""
