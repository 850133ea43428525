"""A drawn model, what it is fed, and what is asked of ortscan."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto

__all__ = ["Case", "Feeds"]

Feeds = Mapping[str, np.ndarray]


@dataclass
class Case:
    """``kind`` is ``optimize`` or ``migrate``, ``options`` its keyword arguments; the first of ``feeds`` must run."""

    model: ModelProto
    feeds: list[Feeds]
    kind: str
    options: dict[str, Any]
    about: dict[str, Any] = field(default_factory=dict)
