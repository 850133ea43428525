"""The verifier: runs two models on onnxruntime on the same inputs and compares what they compute.

What it says of two models holds whoever made the second, and however.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ortscan.verification.result import Case, FirstDifference, OutputError, OutputResult, Verification
    from ortscan.verification.verifier import verify

__all__ = ["Case", "FirstDifference", "OutputError", "OutputResult", "Verification", "verify"]


def __getattr__(name: str) -> Any:
    """Import what is asked for: who reads options needs one small module of this package."""
    import importlib

    if name not in __all__:
        raise AttributeError(f"module 'ortscan.verification' has no attribute '{name}'")
    home = "verifier" if name == "verify" else "result"
    return getattr(importlib.import_module(f"ortscan.verification.{home}"), name)
