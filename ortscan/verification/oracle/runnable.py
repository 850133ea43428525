"""Replace the nodes of the original that onnxruntime cannot run as specified.

The comparison then runs the model with the replacements instead of the original.

    LSTM <layout = 1> (x, W, R)    ->    Scan (h0, c0, x @ W') of the LSTM's equations
    y = Max (a, b) of int16        ->    y = ortscan.python.Call <Max> (a, b), which onnx's reference operator computes

Rewrites replace the same recurrent nodes by other nodes than these Scans. An exception are float64 nodes, for which rewrites may
create the same Scans.

Works around ORT-RECURRENT-LAYOUT and ORT-RECURRENT-DOUBLE.
"""

from contextlib import ExitStack

import onnx_ir as ir

from ortscan.modelio import LoadedModel, inline_functions, load, restore_interface
from ortscan.modelio.source import ModelSource, model_of, open_source
from ortscan.ort.sessions import has_kernel
from ortscan.running.graph_index import all_nodes
from rewrites.base import since
from rewrites.driver.prepare import name_free_dims, prepare
from rewrites.driver.recurrent_nodes import model_may_need_rule, node_may_need_rule
from rewrites.driver.tidying import tidy
from rewrites.graph.context import Context, Options
from rewrites.native.operator_names import DOMAIN
from rewrites.ops.rnn.recurrent_node import RecurrentNode, is_recurrent, read
from rewrites.python_ops.put_calls import place_python_ops
from rewrites.recurrent_nodes.expand import expand, in_float32
from rewrites.registry import NODE_RULES
from rewrites.rule import Patch

__all__ = ["reference_oracle", "runnable_oracle", "with_scans", "without_plans"]

_RECURRENT = ("RNN", "GRU", "LSTM")
_FORMS = ("sequence-lengths", "batch-first")
_RECURRENT_SINCE = 7
_NO_KERNEL = "Could not find an implementation for"
_Refused = tuple[LoadedModel, Context, list[RecurrentNode]]


def runnable_oracle(before: ModelSource, after: ModelSource, stack: ExitStack) -> tuple[ModelSource, list[str]]:
    """Return ``before`` with Scans instead of the recurrent nodes that onnxruntime cannot run.

    Also return a note on each Scan. Return ``before`` itself, without notes, in two cases:

    - onnxruntime runs all recurrent nodes of ``before``.
    - The rewritten model ``after`` also contains recurrent nodes that onnxruntime cannot run. The two models are then compared as
      onnxruntime runs them.

    Raises:
        MigrationError: ``before`` is too old for a Scan and cannot be migrated to a later opset.
    """
    refused = _refused(before)
    if refused is None or _refused(after) is not None:
        return before, []
    return _with_scans(refused, stack), [
        f"onnxruntime does not run {view.label} of the original as specified, so a Scan of its equations ran instead"
        for view in refused[2]
    ]


def with_scans(source: ModelSource, stack: ExitStack) -> ModelSource:
    """Return the model with Scans instead of the recurrent nodes that onnxruntime cannot run."""
    refused = _refused(source)
    return source if refused is None else _with_scans(refused, stack)


def _refused(source: ModelSource) -> _Refused | None:
    """Load a model and find its recurrent nodes that onnxruntime cannot run.

    Returns:
        The loaded model, its context and these recurrent nodes; None if there are no such nodes.
    """
    if not any(node.op_type in _RECURRENT and node.domain in ("", "ai.onnx") for node, _ in all_nodes(source.proto)):
        return None
    loaded, old = _loaded(source)
    model = loaded.model
    inline_functions(model, lambda function: any(is_recurrent(node) for node in function.all_nodes()))
    name_free_dims(model)
    ctx = Context.of(model, Options(), lambda _: None)
    if not old and not model_may_need_rule(ctx):
        return None
    prepare(ctx)
    nodes = [node for node in model.graph.all_nodes() if is_recurrent(node) and (old or node_may_need_rule(node, ctx))]
    views = [view for view in map(read, nodes) if isinstance(view, RecurrentNode)]
    return (loaded, ctx, views) if views else None


def _loaded(source: ModelSource) -> tuple[LoadedModel, bool]:
    """Load a model. If its opset has no Scan, migrate it to opset 18.

    Returns:
        The loaded model, and a flag: True if onnxruntime cannot run the recurrent operators of the model's original opset.
    """
    from ortscan.migration import migrated

    model = model_of(source)
    version = model.opset_imports.get("", since.SCAN)
    if version >= since.SCAN:
        return load(model), False
    return migrated(model, 18)[0], version < _RECURRENT_SINCE


def _with_scans(refused: _Refused, stack: ExitStack) -> ModelSource:
    loaded, ctx, views = refused
    for view in views:
        _expand(view, ctx)
    return _tidied(loaded, ctx, stack)


def _expand(view: RecurrentNode, ctx: Context) -> None:
    if view.dtype in (ir.DataType.BFLOAT16, ir.DataType.FLOAT16):
        view = _view(in_float32(view, ctx))
    for rule in NODE_RULES:
        outcome = rule.check(view, ctx) if rule.name in _FORMS else None
        if isinstance(outcome, Patch):
            view = _view(outcome.edit()[0])
    expand(view, ctx)


def _view(node: ir.Node) -> RecurrentNode:
    view = read(node)
    assert isinstance(view, RecurrentNode)
    return view


def _tidied(loaded: LoadedModel, ctx: Context, stack: ExitStack) -> ModelSource:
    tidy(ctx)
    restore_interface(loaded)
    return open_source(loaded, stack)


def reference_oracle(before: ModelSource, error: str, stack: ExitStack) -> tuple[ModelSource, list[str]] | None:
    """Replace nodes for which onnxruntime has no kernel by calls to Python.

    Args:
        before: the original model.
        error: the error of onnxruntime for the original.
        stack: an ExitStack that closes the changed model.

    Returns:
        The changed model and a note on each call. None if the error has another cause than a missing kernel, or if one of the nodes
        cannot be replaced.
    """
    if _NO_KERNEL not in error:
        return None
    loaded = load(model_of(before))
    name_free_dims(loaded.model)
    ctx = Context.of(loaded.model, Options(), lambda _: None, has_kernel)
    prepare(ctx)
    gaps = place_python_ops(ctx, wider=False)
    if not gaps or any(gap.fate != "python" for gap in gaps):
        return None
    notes = [f"onnxruntime has no kernel for {gap.where} of the original, so onnx's reference ran instead" for gap in gaps]
    return _tidied(loaded, ctx, stack), notes


def without_plans(before: ModelSource, stack: ExitStack) -> ModelSource:
    """Inline the functions of compiled loops, so that these loops run as ordinary loops.

    Return ``before`` itself if it has no compiled loops.
    """
    if not any(function.domain == DOMAIN for function in before.proto.functions):
        return before
    loaded = load(model_of(before))
    inline_functions(loaded.model, lambda function: function.domain == DOMAIN)
    restore_interface(loaded)
    return open_source(loaded, stack)
