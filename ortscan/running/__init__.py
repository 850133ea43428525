"""Find out how a model can be run, and run it on onnxruntime, if necessary in a subprocess. ``verification`` compares the
results.
"""

__all__: list[str] = []
