"""A recurrence and what ``optimize`` makes of it, against what it computes in double."""

from collections.abc import Sequence

import numpy as np
import onnx

import ortscan
from tests.campaigns.closed_forms.families import FAMILIES, NEAR_MISSES, Sizes, exact, feeds_of, model_of
from tests.support.runtime import ort_session, run_session

__all__ = ["check_family", "check_near_miss", "compared", "has_loop"]

_GROWTH = 4.0
_ROUNDINGS = 4.0


def check_family(name: str, sizes: Sizes, seed: int) -> str:
    """Return what is wrong: errors that grow more than 4 times as fast as the loop's own, or nothing."""
    family = FAMILIES[name]
    before = model_of(family.body, sizes, family.states, family.opset)
    after = ortscan.optimize(before, verify=False)
    feeds = feeds_of(sizes, family.starts[: family.states], seed, near_one=name.startswith("product"))
    if not sizes.steps:
        return _without_steps(after, feeds, family.states)
    loops, mine = (run_session(ort_session(one), feeds) for one in (before, after))
    return compared(exact(family, feeds), loops, mine)


def compared(exact: Sequence[np.ndarray], loops: Sequence[np.ndarray], mine: Sequence[np.ndarray]) -> str:
    """Return what is wrong with ``mine``: errors that grow more than 4 times as fast as those of ``loops``, or nothing."""
    scale, errors = 1.0, [0.0, 0.0]
    for wanted, theirs, ours in zip(exact, loops, mine, strict=True):
        if theirs.dtype.kind != "f":
            if not np.array_equal(theirs, ours):
                return "integers differ"
            continue
        finite = np.isfinite(theirs)
        if not np.array_equal(finite, np.isfinite(ours)):
            return "other elements are finite"
        scale = max(scale, float(np.abs(wanted[finite]).max(initial=0.0)))
        off = (float(np.abs(one.astype(wanted.dtype) - wanted)[finite].max(initial=0.0)) for one in (theirs, ours))
        errors = [max(pair) for pair in zip(errors, off, strict=True)]
    eps = max((float(np.finfo(one.dtype).eps) for one in loops if one.dtype.kind == "f"), default=0.0)
    if errors[1] > _GROWTH * errors[0] + _ROUNDINGS * eps * scale:
        return f"an error of {errors[1]:.3g}, the loop's is {errors[0]:.3g}"
    return ""


def _without_steps(after: onnx.ModelProto, feeds: dict[str, np.ndarray], states: int) -> str:
    """Without a step onnxruntime refuses the loop; what comes of it may refuse as well, or give the states that there were."""
    try:
        found = run_session(ort_session(after), feeds)
    except Exception as error:  # onnxruntime raises classes of its own
        return "" if "onnxruntime" in type(error).__module__ else str(error)
    kept = all(np.array_equal(found[place], feeds[f"z{place + 1}"]) for place in range(states))
    return "" if kept and found[-1].size == 0 else "states were made of nothing"


def check_near_miss(name: str, sizes: Sizes, seed: int) -> str:
    """Return what is wrong: the loop is gone, or numbers differ; or nothing."""
    before = model_of(NEAR_MISSES[name], sizes)
    after = ortscan.optimize(before, verify=False)
    if not has_loop(after):
        return "the loop is gone"
    feeds = feeds_of(sizes, (0.5,), seed)
    loops, mine = (run_session(ort_session(one), feeds) for one in (before, after))
    alike = all(np.allclose(ours, theirs, rtol=1e-4, atol=1e-4, equal_nan=True) for theirs, ours in zip(loops, mine, strict=True))
    return "" if alike else "numbers differ"


def has_loop(model: onnx.ModelProto) -> bool:
    """Whether there is a loop that is in no branch."""
    return any(node.op_type in ("Loop", "Scan") for node in model.graph.node)
