"""Benchmarks of models on onnxruntime: the time of a run at several sizes, of loading and of each loop, and the peak memory.

Each speed ratio has a confidence interval. If rounds, each with new sessions, disagree on which model is faster, the difference is
reported as not measurable.
"""

__all__: list[str] = []
