"""Removes scan inputs that the body does not read, and merges equal scan inputs.

    Scan(h0, xs, zs) body(h, x, z) => f(h, x)       ->    Scan(h0, xs) body(h, x) => f(h, x)
    Scan(h0, xs, xs) body(h, x, x2) => f(h, x, x2)  ->    Scan(h0, xs) body(h, x) => f(h, x, x)

At least one scan input stays, because it determines the trip count. A scan input of known length is preferred.
"""

import onnx_ir as ir

from rewrites.base.plain_text import counted
from rewrites.graph.context import Context
from rewrites.graph.replace import replace_value
from rewrites.graph.values import dim_of, is_read, size_estimate
from rewrites.loops import Loop, LoopView, ScanInput, rebuild
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if scan inputs are unread or equal to another scan input."""
    if isinstance(loop, LoopView) or len(loop.scan_inputs) == 1:
        return NOTHING_HERE
    first: dict[tuple[ir.Value, int, bool], ScanInput] = {}
    twins: list[tuple[ScanInput, ScanInput]] = []
    for scan in loop.scan_inputs:
        earlier = first.setdefault((scan.outer, scan.axis, scan.reverse), scan)
        if earlier is not scan:
            twins.append((scan, earlier))
    read = {id(twin) for pair in twins for twin in pair if is_read(twin.inner)}
    kept = [scan for scan in first.values() if id(scan) in read or is_read(scan.inner)] or [
        min(
            first.values(), key=lambda scan: (not isinstance(dim_of(scan.outer, scan.axis), int), size_estimate(scan.outer, {}, 64))
        )
    ]
    for scan, earlier in twins:
        if is_read(scan.inner) and earlier not in kept:
            kept.append(earlier)
    if len(kept) == len(loop.scan_inputs):
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        for scan, earlier in twins:
            replace_value(scan.inner, earlier.inner, ctx.names)
        return [rebuild(loop, ctx.names, scan_inputs=kept)]

    return Patch(f"dropped {counted(len(loop.scan_inputs) - len(kept), 'scan input')} not read, or read twice", edit)


RULE = Rule("unused-scan-inputs", "cleanup", "loop", check)
