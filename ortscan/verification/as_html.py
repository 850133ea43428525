"""A Verification, as plain data, as sections of an HTML page."""

from collections.abc import Mapping
from typing import Any

from ortscan.page.document import document, fragment, header, listed, paragraphs, table

__all__ = ["verification_fragment", "verification_html", "verification_page"]

_MOST_CASES = 400


def verification_html(facts: Mapping[str, Any]) -> str:
    """Return what was compared: ``facts`` as ``Verification.to_dict`` gives them."""
    headline, *rest = facts["summary"].splitlines()
    look = "good" if facts["ok"] else "some" if facts["inconclusive"] else "bad"
    outputs = [
        (
            one["name"],
            f"{one['status']}: {one['reason']}" if one["reason"] else one["status"],
            f"{one['absolute']:.2g}",
            f"{one['allowed']:.2g}",
            one["compared"],
        )
        for one in facts["outputs"]
    ]
    shown = facts["cases"][:_MOST_CASES]
    cases = [(_label(case), f"{case['status']}: {case['reason']}" if case["reason"] else case["status"]) for case in shown]
    more = len(facts["cases"]) - len(shown)
    parts = [paragraphs([headline], look), paragraphs(rest, "soft")]
    if facts["first_difference"] is not None:
        parts.append(_difference(facts["first_difference"]))
    if outputs:
        right = ("worst error", "allowed", "cases")
        parts.append(table(("output", "outcome", *right), outputs, right))
    if cases:
        said = f"{len(facts['cases'])} cases" + (f", the first {len(shown)} of them" if more else "")
        parts.append(f'<details><summary class="soft">{said}</summary>{table(("case", "outcome"), cases)}</details>')
    return "".join(parts)


def verification_page(facts: Mapping[str, Any]) -> str:
    """Return a whole page."""
    return document("verification", header("ortscan", "Verification", []) + verification_html(facts))


def verification_fragment(facts: Mapping[str, Any]) -> str:
    """Return it for a page that others made."""
    return fragment(verification_html(facts))


def _label(case: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in {**case["dims"], **case["varied"]}.items()) or "the given sizes"


def _difference(first: Mapping[str, Any]) -> str:
    index = list(first["index"])
    facts = [("first difference", f"{first['output']}{index if index else ''}"), ("case", _label(first["case"]))]
    return listed([*facts, ("why", first["reason"]), ("before", first["before"]), ("after", first["after"])])
