"""Find out how a model can be run, and run it on onnxruntime. A model that may crash runs in a subprocess.

The package ``verification`` compares the results.
"""

__all__: list[str] = []
