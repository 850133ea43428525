"""What a call can do: run a graph once, or run a Scan."""

from collections.abc import Callable, Sequence

import numpy as np

from ortscan.custom_ops.bodies import prepared_body
from ortscan.custom_ops.scan import ScanPlan, run_scan
from rewrites.python_ops.packed_model import unpack
from rewrites.python_ops.wire import Spec

__all__ = ["runner_of"]


def runner_of(spec: Spec) -> Callable[[Sequence[np.ndarray]], Sequence[object]]:
    """Prepare what ``spec`` describes. Raises OrtscanError for what this version does not know."""
    from ortscan.errors import UnsupportedModel

    if spec.what not in ("graph", "scan"):
        raise UnsupportedModel(f"the model calls '{spec.what}' in Python, which this version of ortscan does not know")
    body = prepared_body(unpack(spec.payload["model"]))
    if spec.what == "graph":
        return body
    plan = ScanPlan.read(spec.payload)
    return lambda values: run_scan(plan, body, values)
