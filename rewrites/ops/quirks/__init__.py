"""The register of defects of onnxruntime and onnx: what each does, where it was seen, and which modules work round it.

A defect that is gone makes a test fail, which names the modules that need not work round it any more. The docstring of a module
that works round a defect names its id, so that who looks for either finds the other.
"""

from collections.abc import Mapping
from types import MappingProxyType

from rewrites.ops.quirks.inference import INFERENCE
from rewrites.ops.quirks.loops import LOOPS
from rewrites.ops.quirks.operators import OPERATORS
from rewrites.ops.quirks.quirk import Kind, Quirk
from rewrites.ops.quirks.recurrent_nodes import RECURRENT_NODES
from rewrites.ops.quirks.rewriting import REWRITING

__all__ = ["QUIRKS", "Kind", "Quirk"]

QUIRKS: Mapping[str, Quirk] = MappingProxyType(
    {quirk.id: quirk for quirk in (*LOOPS, *RECURRENT_NODES, *REWRITING, *OPERATORS, *INFERENCE)}
)
"""By id."""
