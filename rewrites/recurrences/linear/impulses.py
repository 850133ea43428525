"""What constant systems do to what came in steps ago: powers of a matrix, and how large all of it together may become."""

import numpy as np

__all__ = ["powers", "reach"]

_AT_ONCE = 256
_GONE = 1e-60


def powers(step: np.ndarray, count: int) -> np.ndarray:
    """Return the powers of ``step`` from 0 to ``count`` - 1, [count, n, n]; what is too large to be a number is not one."""
    found = np.empty((count, *step.shape))
    found[0] = np.eye(len(step))
    done = 1
    with np.errstate(all="ignore"):
        while done < count:
            more = min(done, count - done)
            found[done : done + more] = found[:more] @ (found[done - 1] @ step)
            done += more
    return found


def reach(step: np.ndarray, steps: int) -> np.ndarray:
    """Return the sum of the magnitudes of the powers of ``step`` over ``steps`` steps, or infinity."""
    first = powers(step, min(steps, _AT_ONCE))
    total, many = np.zeros_like(step), np.eye(len(step))
    with np.errstate(all="ignore"):
        leap = first[-1] @ step
        for _ in range(-(-steps // _AT_ONCE)):
            total = total + np.abs(many @ first).sum(0)
            many = many @ leap
            if not np.isfinite(total).all():
                return np.full_like(step, np.inf)
            if np.abs(many).max() < _GONE:
                break
    return total
