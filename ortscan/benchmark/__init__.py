"""Benchmarks of models on onnxruntime: the time of a run at several sizes, of loading and of each loop, and the peak memory.

Each ratio has a confidence interval. If rounds with new sessions disagree, the difference is reported as not measurable.
"""

__all__: list[str] = []
