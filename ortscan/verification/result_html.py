"""The sections of an HTML page on the result of a verification."""

from collections.abc import Mapping
from typing import Any

from ortscan.page.document import listed, paragraphs, table

__all__ = ["case_label", "verification_html"]

_MOST_CASES = 400
"""The most cases on an HTML page."""


def case_label(dims: Mapping[str, int], varied: Mapping[str, Any]) -> str:
    """Return a case in a few words: ``T=3, B=2, values=large``."""
    return ", ".join(f"{name}={value}" for name, value in {**dims, **varied}.items()) or "the given sizes"


def verification_html(facts: Mapping[str, Any]) -> str:
    """Return the sections of an HTML page for ``facts``, the result of `Verification.to_dict`."""
    headline, *rest = facts["summary"].splitlines()
    look = "good" if facts["ok"] else "some" if facts["inconclusive"] else "bad"
    outputs = [
        (each["name"], _outcome(each), f"{each['absolute']:.2g}", f"{each['allowed']:.2g}", each["compared"])
        for each in facts["outputs"]
    ]
    shown = facts["cases"][:_MOST_CASES]
    cases = [(case_label(case["dims"], case["varied"]), _outcome(case)) for case in shown]
    parts = [paragraphs([headline], look), paragraphs(rest, "soft")]
    if facts["first_difference"] is not None:
        parts.append(_difference(facts["first_difference"]))
    if outputs:
        right = ("worst error", "allowed", "cases")
        parts.append(table(("output", "outcome", *right), outputs, right))
    if cases:
        caption = f"{len(facts['cases'])} cases" + (f", the first {len(shown)} of them" if len(facts["cases"]) > len(shown) else "")
        parts.append(f'<details><summary class="soft">{caption}</summary>{table(("case", "outcome"), cases)}</details>')
    return "".join(parts)


def _outcome(facts: Mapping[str, Any]) -> str:
    return f"{facts['status']}: {facts['reason']}" if facts["reason"] else str(facts["status"])


def _difference(first: Mapping[str, Any]) -> str:
    index = list(first["index"])
    facts = [
        ("first difference", f"{first['output']}{index if index else ''}"),
        ("case", case_label(first["case"]["dims"], first["case"]["varied"])),
    ]
    return listed([*facts, ("why", first["reason"]), ("before", first["before"]), ("after", first["after"])])
