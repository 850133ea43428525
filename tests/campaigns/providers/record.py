"""What was seen on the providers: kept in ``tests/data/providers.json``, printed, and written as ``ortscan/docs/maintainers/providers.md``."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.campaigns.providers.abilities import Ability

__all__ = ["FILE", "ability", "as_document", "as_text", "keep", "kept", "model"]

FILE = Path(__file__).parents[2] / "data" / "providers.json"
Seen = dict[str, Any]


def ability(asked: Ability, said: Seen, mine: Sequence[str]) -> Seen:
    """Return what became of a small model: it ``runs`` there, is ``left`` to the CPU, or ``breaks``, and how."""
    became = said["became"]
    about = {"name": asked.name, "operator": asked.operator, "limit": asked.limit}
    if became != "equal":
        return {**about, "verdict": "breaks", "how": _short(became)}
    if asked.operator == "*":
        left = sorted({op for name, ops in said["places"].items() if name not in mine for op in ops} - {"Constant"})
        return {**about, "verdict": "left", "how": ", ".join(left)} if left else {**about, "verdict": "runs"}
    return {**about, "verdict": "runs" if _takes(said, asked.operator, mine) else "left"}


def _takes(said: Seen, operator: str, mine: Sequence[str]) -> bool:
    places = said["places"]
    on = {op for name, ops in places.items() if name in mine for op in ops}
    return operator in on or (
        "*" in on and not any(operator in ops or "*" in ops for name, ops in places.items() if name not in mine)
    )


def model(job: Seen, results: Sequence[Seen], mine: Sequence[str]) -> Seen:
    """Return what became of a model before and after."""
    before, after = (_one(said, mine) for said in results)
    return {"name": job["name"], "before": before, "after": after, **({"optimize": job["optimize"]} if "optimize" in job else {})}


def _one(said: Seen, mine: Sequence[str]) -> Seen:
    places = said.get("places", {})
    there = sum(sum(ops.values()) for name, ops in places.items() if name in mine)
    elsewhere = {op: count for name, ops in places.items() if name not in mine for op, count in ops.items()}
    rounded = {key: float(f"{said[key]:.3g}") for key in ("ms", "loading") if key in said}
    return {"became": _short(said["became"]), "there": there, "elsewhere": elsewhere, "copies": said.get("copies", 0), **rounded}


def _short(text: str) -> str:
    """Return how it begins, up to the colon, and the end of what was said."""
    return text if len(text) <= 200 else f"{text.partition(':')[0]}: … {text[-160:]}"


def keep(seen: Seen) -> None:
    """Put what was seen of one provider in its place in the file."""
    every = {each["name"]: each for each in kept()} | {seen["name"]: seen}
    FILE.write_text(json.dumps([every[name] for name in sorted(every)], indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def kept() -> list[Seen]:
    """Return what the file has."""
    return list(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.exists() else []


def as_text(seen: Seen) -> str:
    """Return a page on one provider: its abilities, then a line for each model."""
    lines = [f"## {seen['name']}: {seen['versions']} ({seen['about']})\n", _abilities(seen), "", _summary(seen), "", _models(seen)]
    return "\n".join(lines) + "\n"


def as_document() -> str:
    """Return providers.md."""
    head = (
        "# Execution providers that were run\n\nMade by `python -m tests.campaigns providers --write`, then `python -m tests.support.tables`.\n\n"
        "This page shows all providers that can run without their hardware. For each provider, there are three parts:\n\n"
        "* Three lists show which operators the provider runs, and in which forms, such as an LSTM with peepholes. Each form was tried with a\n"
        "  small model of one operator.\n"
        "* The first table has the totals for the models of the tests, with fixed sizes. Each model ran twice: as its exporter wrote it\n"
        "  (*before*), and optimised for the provider's target (*after*).\n"
        "* The second table has a row for each of these models. The first four columns of results are for the run before, the next four for\n"
        "  the run after.\n\n"
        "The columns are:\n\n"
        "* *Equal*: the outputs equal those of the original on onnxruntime's CPU.\n"
        "* *Models run entirely*: the number of models of which the provider ran every node.\n"
        "* *Nodes on the provider*: the number of nodes that the provider ran, including those in loop bodies.\n"
        "* *Nodes on the CPU*: the number of nodes that the provider left to onnxruntime's CPU.\n"
        "* *Copies*: the number of nodes that move tensors between the provider and the CPU.\n\n"
        "All times were measured on the processor of one machine, even if the provider is made for another device. Therefore only the ratio\n"
        "within a row is meaningful.\n"
    )
    return "\n".join([head, *(as_text(seen) for seen in kept())])


def _abilities(seen: Seen) -> str:
    by_verdict: dict[str, list[str]] = {"runs": [], "left": [], "breaks": []}
    for one in seen["abilities"]:
        by_verdict[one["verdict"]].append(f"`{one['name']}`" + (f" ({_cell(one['how'])})" if "how" in one else ""))
    titles = {"runs": "Runs", "left": "Left to the CPU", "breaks": "Accepted, but fails or computes wrong results"}
    return "\n".join(f"* {titles[verdict]}: {', '.join(names) or 'none'}" for verdict, names in by_verdict.items())


def _summary(seen: Seen) -> str:
    models = seen["models"]
    equal = {when: sum(one[when]["became"] == "equal" for one in models) for when in ("before", "after")}
    there = {when: sum(one[when]["there"] for one in models) for when in ("before", "after")}
    left = {when: sum(sum(one[when]["elsewhere"].values()) for one in models) for when in ("before", "after")}
    whole = {when: sum(_whole(one[when]) for one in models) for when in ("before", "after")}
    copies = {when: sum(one[when]["copies"] for one in models) for when in ("before", "after")}
    ratios = [one["before"]["ms"] / one["after"]["ms"] for one in models if "ms" in one["before"] and "ms" in one["after"]]
    rows = [
        (when, f"{equal[when]} of {len(models)}", whole[when], there[when], left[when], copies[when])
        for when in ("before", "after")
    ]
    table = _table(["", "equal to the CPU", "models run entirely", "nodes on the provider", "nodes on the CPU", "copies"], rows)
    return table + (f"\nTime before ÷ time after, median of {len(ratios)}: {median(ratios):.2f}." if ratios else "")


def _whole(one: Seen) -> bool:
    return one["became"] == "equal" and one["there"] > 0 and not one["elsewhere"]


def _models(seen: Seen) -> str:
    rows = [
        (
            f"`{one['name']}`",
            *(cell for when in ("before", "after") for cell in _cells(one[when])),
            _speed(one),
            _cell(one.get("optimize", "")),
        )
        for one in seen["models"]
    ]
    titles = [
        "model",
        "result before",
        "nodes on the provider",
        "nodes on the CPU",
        "copies",
        "result after",
        "nodes on the provider",
        "nodes on the CPU",
        "copies",
        "time before ÷ after",
        "not optimised",
    ]
    keep_last = any(row[-1] for row in rows)
    return _table(titles if keep_last else titles[:-1], rows if keep_last else [row[:-1] for row in rows])


def _cells(one: Seen) -> tuple[object, ...]:
    return _cell(one["became"]), one["there"], sum(one["elsewhere"].values()), one["copies"]


def _speed(one: Seen) -> str:
    return f"{one['before']['ms'] / one['after']['ms']:.2f}" if "ms" in one["before"] and "ms" in one["after"] else ""


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
