"""Replaces states of a Scan by scan inputs."""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.analysis.dependence import unread_nodes
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes
from rewrites.loops import ScanInput, ScanView, State, rebuild

__all__ = ["replace_states_by_scan_inputs"]


def replace_states_by_scan_inputs(loop: ScanView, states: Sequence[State], inputs: Sequence[ScanInput], ctx: Context) -> ir.Node:
    """Replace ``states`` of ``loop`` by the scan inputs ``inputs``, and return the new Scan node.

    A scan input with the ``inner`` value of a state replaces this state. No result may be computed from the other states.
    """
    kept = [state for state in loop.states if state not in states]
    node = rebuild(loop, ctx.names, states=kept, scan_inputs=[*loop.scan_inputs, *inputs])
    remove_nodes(unread_nodes(loop.body))
    return node
