"""Tells what a library says of a model from what happened to come by while it was asked.

A signal's handler may raise anything anywhere, and memory or stack may end inside any call. Such an exception is no answer to what
a library was asked, and must neither be taken for one nor kept as one. What a library raises is of a class of its own, or an
ordinary one raised in its code or in native code that it calls.
"""

import sys

__all__ = ["is_from_elsewhere", "is_raised_by"]

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
    """Whether ``error`` is what one of ``libraries`` (top-level packages) says of what it was given."""
    if _home(type(error).__module__) in libraries:
        return True
    if type(error).__module__ != "builtins" or not isinstance(error, _ORDINARY) or isinstance(error, RecursionError):
        return False
    return _raised_in(error) in libraries


def is_from_elsewhere(error: BaseException) -> bool:
    """Whether ``error`` is of a class, or was raised in code, that is neither ortscan's nor of anything it calls."""
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
