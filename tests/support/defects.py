"""Functions that fail as ortscan's own would."""

from collections.abc import Callable
from typing import Any

__all__ = ["failing"]


def failing(defect: BaseException | type[BaseException], module: str = "ortscan.broken") -> Callable[..., Any]:
    """Give a function that raises ``defect``, and is in ``module`` for whoever asks where it was raised."""
    names: dict[str, Any] = {"__name__": module, "defect": defect}
    exec("def fails(*_, **__):\n    raise defect", names)
    return names["fails"]
