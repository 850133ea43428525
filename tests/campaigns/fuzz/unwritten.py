"""Which numbers of onnxruntime are memory that nothing wrote: the cell of an LSTM without steps, a Concat of what does not fit.

Such numbers differ between two runs, between memory reserved in advance and memory as it comes, or between fillings of fresh memory.

Works around ORT-LSTM-NO-STEPS and ORT-CONCAT-MISFIT.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import onnxruntime as ort

from tests.campaigns.fuzz.case import Feeds
from tests.campaigns.fuzz.comparing import difference
from tests.support.runtime import run_session

__all__ = ["unwritten_outputs"]

_M_PERTURB = -6
_FILLINGS = (0, 0x40, 0xBF)
"""What bytes of fresh memory are made from: of floats, numbers near to 3 and -1.5 and their complements."""


def unwritten_outputs(data: bytes, oracle: ort.InferenceSession, feeds: Feeds, before: list[Any], coarse: float) -> set[int]:
    """Return the places of the outputs that the model of these bytes, of which ``oracle`` is a session, gives otherwise then."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.enable_cpu_mem_arena = options.enable_mem_pattern = options.enable_mem_reuse = False
    bare = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    found: set[int] = set()
    for filling in _FILLINGS:
        with _filled(filling):
            answers = [run_session(session, feeds) for session in (bare, oracle)]
        for answer in answers:
            pairs = enumerate(zip(before, answer, strict=True))
            found.update(place for place, (a, b) in pairs if difference([a], [b], coarse) is not None)
    return found


@contextmanager
def _filled(byte: int) -> Iterator[None]:
    """Have the C library fill what is allocated, where it can."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or not byte:
        yield
        return
    mallopt(_M_PERTURB, byte)
    try:
        yield
    finally:
        mallopt(_M_PERTURB, 0)
