"""Run two models on onnxruntime on the same inputs, and compare their outputs.

The comparison does not use any information about how the second model was created from the first.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ortscan.verification.result import Case, FirstDifference, OutputError, OutputResult, Verification
    from ortscan.verification.verifier import verify

__all__ = ["Case", "FirstDifference", "OutputError", "OutputResult", "Verification", "verify"]


def __getattr__(name: str) -> Any:
    """Import a name of this package when it is first used.

    The command line imports this package to read options, and should not import everything that a comparison needs.
    """
    import importlib

    if name not in __all__:
        raise AttributeError(f"module 'ortscan.verification' has no attribute '{name}'")
    home = "verifier" if name == "verify" else "result"
    return getattr(importlib.import_module(f"ortscan.verification.{home}"), name)
