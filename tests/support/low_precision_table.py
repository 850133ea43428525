"""The table of quantised and float16 models, from the outcomes that the campaign ``hosts --only low_precision`` measured."""

import json
from pathlib import Path
from typing import Any

__all__ = ["FILE", "as_table"]

FILE = Path(__file__).parents[1] / "data" / "low_precision.json"


def as_table() -> str:
    """Return the versions of the tools, and the table."""
    measured = json.loads(FILE.read_text(encoding="utf-8"))
    versions = " and ".join(f"{name} {version}" for name, version in measured["versions"].items())
    models = measured["models"]
    tools = list(models[0]["before"])
    lines = [["model", *(f"`{tool}`" for tool in tools)], ["---"] * (len(tools) + 1)]
    lines += [
        [f"`{row['model']}`", *(f"{_cell(row['before'][tool])} → {_cell(row['after'][tool])}" for tool in tools)] for row in models
    ]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"Measured with {versions}.\n\n{table}"


def _cell(outcome: dict[str, Any]) -> str:
    """Return the quantised products and the difference of an outcome."""
    if "fails" in outcome:
        return "fails"
    if "products" not in outcome:
        return f"{outcome['difference']:.1g}"
    quantised = f"{outcome['quantised']} of {outcome['products']}"
    return f"{quantised} ({outcome['difference']:.1g})" if outcome["quantised"] else quantised
