"""A Bench, as plain data, as sections of an HTML page: bars of the times, tables of models and loops."""

from collections.abc import Mapping
from typing import Any

from ortscan.benchmark.ratio import Ratio
from ortscan.benchmark.words import duration, gain, noise
from ortscan.page.document import document, fragment, header
from ortscan.page.elements import Bar, bars, paragraphs, table
from ortscan.report.words import size
from rewrites.base.counted import counted

__all__ = ["bench_card", "bench_fragment", "bench_html", "bench_page"]

_RATIO = ("value", "low", "high", "rounds", "confidence")


def bench_html(facts: Mapping[str, Any]) -> str:
    """Return what was measured: ``facts`` as ``Bench.to_dict`` gives them."""
    names = [model["name"] for model in facts["models"]]
    times = [
        Bar(name, timing["median"], _time(timing, ratio), f"A run, {_label(result)}: median", _look(ratio))
        for result in facts["results"]
        for name, timing, ratio in zip(names, result["timings"], [None, *map(_ratio, result["ratios"])], strict=True)
    ]
    models = [
        (
            model["name"],
            size(model["file_bytes"]),
            duration(model["load_seconds"]),
            "?" if model["peak_bytes"] is None else size(model["peak_bytes"]),
        )
        for model in facts["models"]
    ]
    right = ("file", "load", "peak memory")
    threads = counted(facts["threads"], "thread") if facts["threads"] else "threads as onnxruntime chooses"
    said = f"onnxruntime {facts['runtime']} on the CPU, {threads}, {counted(facts['rounds'], 'round')}"
    return "".join(
        [bars(times), bars(_loops(facts)), table(("model", *right), models, right), paragraphs([said, *facts["notes"]], "soft")]
    )


def bench_card(facts: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what the last model gains at the first of the sizes."""
    result = facts["results"][0]
    if not result["ratios"]:
        return duration(result["timings"][0]["median"]), f"a run, {_label(result)}", ""
    ratio = _ratio(result["ratios"][-1])
    value = gain(ratio) if ratio.is_measurable else "no difference"
    return value, f"measured, {_label(result)}", _look(ratio)


def bench_page(facts: Mapping[str, Any]) -> str:
    """Return a whole page."""
    title = " and ".join(model["name"] for model in facts["models"])
    return document(title, header("ortscan bench", title, facts["summary"].splitlines(), [bench_card(facts)]) + bench_html(facts))


def bench_fragment(facts: Mapping[str, Any]) -> str:
    """Return it for a page that others made."""
    return fragment(bench_html(facts))


def _loops(facts: Mapping[str, Any]) -> list[Bar]:
    return [
        Bar(
            f"{model['name']}: {loop['name']}",
            loop["seconds"],
            f"{duration(loop['seconds'])} · {loop['share']:.0%} of a run",
            f"Loops and recurrent nodes, {_label(facts['results'][0])}",
        )
        for model in facts["models"]
        for loop in model["loops"][:24]
    ]


def _time(timing: Mapping[str, Any], ratio: Ratio | None) -> str:
    said = duration(timing["median"])
    return said if ratio is None else f"{said} · {gain(ratio)} ({noise(ratio)})"


def _look(ratio: Ratio | None) -> str:
    return "" if ratio is None or not ratio.is_measurable else "good" if ratio.is_faster else "bad"


def _ratio(row: Mapping[str, Any]) -> Ratio:
    return Ratio(**{name: row[name] for name in _RATIO})


def _label(result: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in result["sizes"].items()) or "fixed sizes"
