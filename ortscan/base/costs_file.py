"""Read and write a file of costs.

Costs are times in ns, for example of one step of a loop. From the costs, a rule estimates how long a loop and its replacement run.

``ortscan bench --calibrate`` measures the costs of one machine and writes the file. ``optimize`` can use the file on any machine.

    {"ortscan_costs": 1, "onnxruntime": "1.32.0", "ns": {"start": 8000.0, "step": 1000.0, ...}}

Missing costs keep their defaults.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ortscan.base.paths import is_path_like
from rewrites.base.abilities import Costs, cost_names
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, one_line, quoted, shown

__all__ = ["costs_text", "read_costs"]

_FORMAT = 1
_MOST_BYTES = 1 << 16
_LARGEST = 1e9


def costs_text(costs: Costs, runtime: str) -> str:
    """Return the text of a file of ``costs``, measured with onnxruntime ``runtime``."""
    return json.dumps({"ortscan_costs": _FORMAT, "onnxruntime": runtime, "ns": asdict(costs)}, indent=2) + "\n"


def read_costs(costs: Any) -> Costs:
    """Return the costs that the option ``costs`` selects.

    Raise OptionError if its value or the file is invalid.

    Args:
        costs: None for the default costs, the path of a file of costs, or a mapping such as ``{"start": 8000.0}``, in ns.
    """
    if costs is None:
        return Costs()
    known = cost_names()
    where, numbers = ("costs", costs) if isinstance(costs, Mapping) else _in_file(costs)
    for name, number in numbers.items():
        if name not in known:
            meant = did_you_mean(name, known)
            raise OptionError(f"{where}: there is no cost {shown(name)}; there are {', '.join(known)}{meant}.")
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if not is_number or not math.isfinite(number) or not 0 < number <= _LARGEST:
            raise OptionError(f"{where}: '{name}' must be a number of ns above 0, at most {_LARGEST:g}, not {shown(number)}.")
    return Costs(**{name: float(number) for name, number in numbers.items()})


def _in_file(path: Any) -> tuple[str, Mapping[Any, Any]]:
    if not is_path_like(path):
        raise OptionError(f"costs must be the path of a file that `ortscan bench --calibrate` wrote, not {shown(path)}.")
    where = f"costs in {quoted(path)}"
    try:
        with Path(path).open("rb") as file:
            content = json.loads(file.read(_MOST_BYTES))
    except OSError as error:
        raise OptionError(f"{where} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{where} are not valid JSON: {one_line(error)}.") from None
    if not isinstance(content, dict) or content.get("ortscan_costs") != _FORMAT or not isinstance(content.get("ns"), dict):
        raise OptionError(f"{where}: the file was not written by `ortscan bench --calibrate` in format {_FORMAT}.")
    return where, content["ns"]
