"""The errors that ortscan raises on purpose, and tests for the origin of other errors.

All errors of ortscan have one base class, so a caller can distinguish a refused model from a defect of ortscan. Each message is one
printable line that names the node and the field.

If a library rejects a model, its exception counts as a result and may be cached. An exception is never cached if a signal handler
raised it, or if memory or the stack was exhausted.
"""

import sys

from rewrites.base.plain_text import sentence

__all__ = [
    "InvariantBroken",
    "LimitExceeded",
    "MalformedLoop",
    "MigrationError",
    "ModelFileError",
    "OptionError",
    "OrtscanError",
    "UnsupportedModel",
    "VerificationFailed",
    "is_from_elsewhere",
    "is_raised_by",
]


class OrtscanError(Exception):
    """The base class of all errors that ortscan raises on purpose."""

    def __init__(self, text: object = "") -> None:
        super().__init__(sentence(text))


class ModelFileError(OrtscanError):
    """A model could not be read or written."""


class OptionError(OrtscanError):
    """An option has an unknown or invalid value."""


class UnsupportedModel(OrtscanError):
    """The model contains something that ortscan would lose or damage."""


class MalformedLoop(OrtscanError):
    """A Scan or Loop violates the specification of its operator."""


class MigrationError(OrtscanError):
    """A model cannot be converted to the requested opset."""


class InvariantBroken(OrtscanError):
    """A rewrite made the model invalid. This is always a defect of ortscan."""


class LimitExceeded(OrtscanError):
    """A model needs more time or memory than the caller allows."""


class VerificationFailed(OrtscanError):
    """The rewritten model computes other results than the original. No file was written."""


_ORDINARY = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    RuntimeError,
    SystemError,
    TypeError,
    ValueError,
)
_OURS = frozenset(
    {"ortscan", "rewrites", "onnx", "onnx_ir", "onnxruntime", "onnxruntime_extensions", "numpy", "google", "ml_dtypes", "sympy"}
)


def is_raised_by(error: BaseException, *libraries: str) -> bool:
    """Return True if one of ``libraries`` raised ``error`` to reject its input.

    ``libraries``: names of top-level packages, such as ``"onnx"``. Return False for errors that no input causes: MemoryError,
    RecursionError, KeyboardInterrupt and similar errors.
    """
    if _home(type(error).__module__) in libraries:
        return True
    if type(error).__module__ != "builtins" or not isinstance(error, _ORDINARY) or isinstance(error, RecursionError):
        return False
    return _raised_in(error) in libraries


def is_from_elsewhere(error: BaseException) -> bool:
    """Return True if foreign code, such as a signal handler, raised ``error`` or defines its class.

    Foreign code is all code except ortscan, the libraries that ortscan uses, and Python's standard library.
    """
    return any(
        home not in _OURS and home not in sys.stdlib_module_names for home in (_home(type(error).__module__), _raised_in(error))
    )


def _raised_in(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "builtins" if trace is None else _home(str(trace.tb_frame.f_globals.get("__name__", "")))


def _home(module: str) -> str:
    return module.partition(".")[0]
