"""Whether SessionOptions hold weights in memory, which onnxruntime takes in the place of those on disk.

SessionOptions cannot be asked. But onnxruntime tells whoever starts a session of a model that these weights do not fit, before it
says that the model's own weights are out of reach: those of the model here are at an absolute path, which it never reads.
"""

from typing import TYPE_CHECKING

from rewrites.base.raised_by import is_raised_by

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["hold_weights"]

_SAID = ("InjectExternalInitializersFromFilesInMemory", "ReplaceInitializedTensor")
_PROBE = (
    b'\x08\x08:\\\n\x1e\n\x0fortscan: weight\x12\x01y"\x08Identity\x12\x01g*&\x08\x01\x10\x02'
    b"B\x0fortscan: weightj\r\n\x08location\x12\x01/p\x01b\x0f\n\x01y\x12\n\n\x08\x08\x02\x12\x04\n\x02\x08\x01B\x04\n\x00\x10\x12"
)
"""A model of one Identity of one external initializer."""


def hold_weights(options: "ort.SessionOptions") -> bool:
    """Whether ``options`` hold any, by file or by name. No session comes into being, and nothing is written."""
    from onnxruntime.capi import _pybind_state as native

    profiles = options.enable_profiling
    try:
        if profiles:
            options.enable_profiling = False
        native.InferenceSession(options, _PROBE, False, False).initialize_session(["CPUExecutionProvider"], [{}], set())
    except Exception as error:
        if not is_raised_by(error, "onnxruntime", "ortscan"):
            raise
        return any(words in str(error) for words in _SAID)
    finally:
        if profiles:
            options.enable_profiling = True
    return False
