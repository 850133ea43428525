"""ortscan takes Scan and Loop out of ONNX models, and proves on onnxruntime that nothing changed.

Here are the names for users alone, each imported when it is asked for: ``import ortscan`` loads no runtime.
"""

from typing import TYPE_CHECKING, Any

from ortscan.base.release import __version__

if TYPE_CHECKING:
    from ortscan.api import explain, migrate, optimize, verify
    from ortscan.custom_ops.registration import register
    from ortscan.errors import OrtscanWarning
    from ortscan.session.inference_session import InferenceSession
    from ortscan.session.patching import patched
    from rewrites.base.errors import OrtscanError

__all__ = [
    "InferenceSession",
    "OrtscanError",
    "OrtscanWarning",
    "__version__",
    "explain",
    "migrate",
    "optimize",
    "patched",
    "register",
    "verify",
]

_HOMES = {
    "InferenceSession": "ortscan.session.inference_session",
    "OrtscanError": "rewrites.base.errors",
    "OrtscanWarning": "ortscan.errors",
    "explain": "ortscan.api",
    "migrate": "ortscan.api",
    "optimize": "ortscan.api",
    "patched": "ortscan.session.patching",
    "register": "ortscan.custom_ops.registration",
    "verify": "ortscan.api",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'ortscan' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
