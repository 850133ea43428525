"""Giving a model that onnxruntime does not run, for its recurrent nodes, a meaning to compare with: that of the operators' text.

    LSTM <layout = 1> (x, W, R)    ->    Scan (h0, c0, x @ W') of the LSTM's equations, which onnxruntime runs

Only for the comparison. The nodes that a rewrite makes of such a node are other ones wherever it is not of float64.

Works round ORT-RECURRENT-LAYOUT and ORT-RECURRENT-DOUBLE.
"""

from contextlib import ExitStack

import onnx_ir as ir

from ortscan.modelio import LoadedModel, inline_functions, restore_interface
from ortscan.modelio.source import Source, model_of, open_source
from ortscan.running.graph_index import all_nodes
from rewrites.base import since
from rewrites.driver.prepare import name_free_dims, prepare
from rewrites.driver.recurrent_nodes import may_be_refused, needs_rule
from rewrites.driver.tidying import tidy
from rewrites.graph.context import Context, Options
from rewrites.ops.rnn.recurrent_node import RecurrentNode, is_recurrent, read
from rewrites.recurrent_nodes.expand import expand
from rewrites.recurrent_nodes.in_float32 import in_float32
from rewrites.registry import NODE_RULES
from rewrites.rule import Patch

__all__ = ["runnable_oracle", "with_scans"]

_RECURRENT = ("RNN", "GRU", "LSTM")
_FORMS = ("sequence-lengths", "batch-first")
_RECURRENT_SINCE = 7
_Refused = tuple[LoadedModel, Context, list[RecurrentNode]]


def runnable_oracle(before: Source, after: Source, stack: ExitStack) -> tuple[Source, list[str]]:
    """Return ``before`` with Scans for the recurrent nodes that onnxruntime does not run, and what was changed in words.

    Gives ``before`` itself where there are none, or ``after`` still has such nodes: they are compared as onnxruntime has them then.
    Raises MigrationError where a model too old for Scans cannot be taken to a later opset.
    """
    found = _refused(before)
    if found is None or _refused(after) is not None:
        return before, []
    return _with_scans(found, stack), [
        f"onnxruntime does not run {view.label} of the original as the text has it: a Scan of its equations ran"
        for view in found[2]
    ]


def with_scans(source: Source, stack: ExitStack) -> Source:
    """Return the model with Scans for the recurrent nodes that onnxruntime does not run."""
    refused = _refused(source)
    return source if refused is None else _with_scans(refused, stack)


def _with_scans(refused: _Refused, stack: ExitStack) -> Source:
    loaded, ctx, views = refused
    for view in views:
        _expand(view, ctx)
    tidy(ctx)
    restore_interface(loaded)
    return open_source(loaded, stack)


def _refused(source: Source) -> _Refused | None:
    """Load the model and return it with the nodes that have a meaning and need a rule; None where there are none."""
    if not any(node.op_type in _RECURRENT and node.domain in ("", "ai.onnx") for node, _ in all_nodes(source.proto)):
        return None
    loaded, old = _loaded(source)
    model = loaded.model
    inline_functions(model, lambda function: any(is_recurrent(node) for node in function.all_nodes()))
    name_free_dims(model)
    ctx = Context.of(model, Options(), lambda _: None)
    if not old and not may_be_refused(ctx):
        return None
    prepare(ctx)
    nodes = [node for node in model.graph.all_nodes() if is_recurrent(node) and (old or needs_rule(node, ctx))]
    views = [view for view in map(read, nodes) if isinstance(view, RecurrentNode)]
    return (loaded, ctx, views) if views else None


def _loaded(source: Source) -> tuple[LoadedModel, bool]:
    """Load the model, in a later opset where its own has no Scan; and say whether its recurrent nodes are too old to be run."""
    from ortscan.migration import migrated
    from ortscan.modelio import load

    model = model_of(source)
    version = model.opset_imports.get("", since.SCAN)
    if version >= since.SCAN:
        return load(model), False
    return migrated(model, 18)[0], version < _RECURRENT_SINCE


def _expand(view: RecurrentNode, ctx: Context) -> None:
    if view.dtype in (ir.DataType.BFLOAT16, ir.DataType.FLOAT16):
        view = _again(in_float32(view, ctx))
    for rule in (one for one in NODE_RULES if one.name in _FORMS):
        outcome = rule.check(view, ctx)
        if isinstance(outcome, Patch):
            view = _again(outcome.edit()[0])
    expand(view, ctx)


def _again(node: ir.Node) -> RecurrentNode:
    view = read(node)
    assert isinstance(view, RecurrentNode)
    return view
