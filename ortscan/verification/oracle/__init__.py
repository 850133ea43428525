"""Copies of the original model that ortscan compares with the rewritten model.

A copy replaces nodes that onnxruntime computes wrongly or cannot run, computes in float64, or adds rounding noise.
"""

__all__: list[str] = []
