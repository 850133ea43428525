"""Take Scan and Loop out of ONNX models, and check on onnxruntime that the outputs stay the same.

This module exports only the public names. Each is imported on first use, so ``import ortscan`` does not load onnxruntime.
"""

from typing import TYPE_CHECKING, Any

from ortscan.base import __version__

if TYPE_CHECKING:
    from ortscan.api import migrate, optimize, verify
    from ortscan.benching import bench
    from ortscan.errors import OrtscanWarning
    from ortscan.explaining import explain
    from ortscan.looping import loop
    from ortscan.plugin.published_names import get_ep_name, get_ep_names, get_library_path
    from ortscan.plugin.register import register, register_plugin
    from ortscan.session.inference_session import InferenceSession
    from ortscan.session.patching import patched
    from rewrites.base.errors import LimitExceeded, OptionError, OrtscanError, VerificationFailed

__all__ = [
    "InferenceSession",
    "LimitExceeded",
    "OptionError",
    "OrtscanError",
    "OrtscanWarning",
    "VerificationFailed",
    "__version__",
    "bench",
    "explain",
    "get_ep_name",
    "get_ep_names",
    "get_library_path",
    "loop",
    "migrate",
    "optimize",
    "patched",
    "register",
    "register_plugin",
    "verify",
]

_HOMES = {
    "InferenceSession": "ortscan.session.inference_session",
    "LimitExceeded": "rewrites.base.errors",
    "OptionError": "rewrites.base.errors",
    "OrtscanError": "rewrites.base.errors",
    "OrtscanWarning": "ortscan.errors",
    "VerificationFailed": "rewrites.base.errors",
    "bench": "ortscan.benching",
    "explain": "ortscan.explaining",
    "get_ep_name": "ortscan.plugin.published_names",
    "get_ep_names": "ortscan.plugin.published_names",
    "get_library_path": "ortscan.plugin.published_names",
    "loop": "ortscan.looping",
    "migrate": "ortscan.api",
    "optimize": "ortscan.api",
    "patched": "ortscan.session.patching",
    "register": "ortscan.plugin.register",
    "register_plugin": "ortscan.plugin.register",
    "verify": "ortscan.api",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "passes":
        return importlib.import_module("ortscan.passes")
    if name not in _HOMES:
        raise AttributeError(f"module 'ortscan' has no attribute '{name}'")
    try:
        return getattr(importlib.import_module(_HOMES[name]), name)
    except ImportError as error:
        from ortscan.errors import RuntimeMissing, is_missing_runtime

        if is_missing_runtime(error):
            raise RuntimeMissing from None
        raise


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
