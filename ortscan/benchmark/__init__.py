"""Benchmark models on onnxruntime.

The results are the time of a run at several sizes, the time of loading, the time of each loop, and the peak memory.

The measurement has several rounds, each with new sessions. Each speed ratio has a confidence interval over these rounds. If the
rounds disagree on which model is faster, the difference is reported as not measurable.
"""

__all__: list[str] = []
