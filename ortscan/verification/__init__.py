"""The verifier: runs two models on onnxruntime on the same inputs and compares what they compute."""

from ortscan.verification.result import Case, FirstDifference, OutputError, OutputResult, Verification
from ortscan.verification.verifier import verify

__all__ = ["Case", "FirstDifference", "OutputError", "OutputResult", "Verification", "verify"]
