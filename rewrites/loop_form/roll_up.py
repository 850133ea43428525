"""Steps that a model has written out one after the other become a Scan again.

    h1 = f(h0, x[0]); h2 = f(h1, x[1]); ...; h64 = f(h63, x[63]); ys = Concat(h1, ..., h64)
    ->    h64, ys = Scan(h0, x) body(h, x_t) => f(h, x_t)

Four steps or more that begin with rows of a tensor, do the same, and read the same values, rows, constants, or what the step before
made; from the first to the last, or back. The step that runs first may be another, such as one that begins with zeros: it stays in
front. ``driver/rolling.py`` says of which Scans other rules make nothing better than the steps were: those stay written out.
"""

import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.context import Context
from rewrites.graph.marks import ROLLED_UP
from rewrites.loop_form.written_out.chains import Chain
from rewrites.loop_form.written_out.roll_up import read_apart, roll_up
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(chain: Chain, ctx: Context) -> Patch | NotApplicable:
    """Say how to put a Scan in the place of the steps, unless each of their results is read on its own."""
    nodes = len(chain.nodes)
    if ctx.opset < since.SCAN or 2 * read_apart(chain) > nodes:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        scan = roll_up(chain, ctx)
        ROLLED_UP.put(scan, True)
        return [scan]

    return Patch(f"rolled {chain.steps} steps of {len(chain.packs)} nodes each into a Scan", edit)


RULE = Rule("roll-up", "loop_form", "written-out steps", check)
