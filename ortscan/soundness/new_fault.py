"""Check that a rewritten model is still valid and has the same shapes, before it is returned.

If the result fails a check, the same check runs on the original. A fault that the original has too is not reported. For the checks,
large weights are replaced by inputs, because the validity of a node does not depend on their values.
"""

from collections.abc import Callable
from pathlib import Path

import onnx
import onnx_ir as ir

from ortscan.modelio import AnyModel, LoadedModel, load, to_proto, unsettle_initializers
from ortscan.modelio.reading import parse, read
from ortscan.modelio.slots import InitializerSlot, substituted
from ortscan.modelio.source import ModelSource
from ortscan.ort.model_errors import error_of_onnx, without_weights
from ortscan.running.analysis import Analysis, known_sizes
from ortscan.running.budget import LARGE_FOLDED, QUICK_BYTES, Budget
from ortscan.running.crash_risks import crash_risks, may_crash_loading
from ortscan.running.growth import may_run_long
from ortscan.running.own_process import OwnProcessRunner
from ortscan.running.pieces import pieces_of
from ortscan.running.runner import Runner, on_one_thread
from ortscan.soundness.output_shapes import contradictory_outputs
from ortscan.soundness.shape_agreement import disagreement
from ortscan.soundness.strict_inference import inference_fault
from rewrites.analysis.shapes.shown_scopes import feedable_inputs, show_captured_constants
from rewrites.base.errors import InvariantBroken, UnsupportedModel
from rewrites.base.lazy import lazy
from rewrites.base.plain_text import quoted
from rewrites.driver.invariants import check_invariants
from rewrites.graph.walk import all_nodes

__all__ = ["Original", "new_fault"]

_LARGE_BYTES = 1 << 16
_KEPT_BYTES = 64 << 20
_ONNXRUNTIMES_OWN = frozenset({"", "ai.onnx.ml", "com.microsoft"})
_LOADING_SECONDS, _SECONDS_A_NODE = 20.0, 0.001
"""The time limit for loading, in seconds, and the limit per node. The larger limit applies. A model that takes longer has no
fault.
"""
_MOST_OPTIMISED = 5000
"""The most nodes of a model that is loaded with onnxruntime's optimisation, which would otherwise take longer than rewriting."""
_MOST_AT_ONCE = 100_000
"""The most nodes that are loaded at once. A larger model is loaded in pieces, and as a whole only if a piece does not load."""


class Original:
    """The original model, with which rewritten models are compared. It is read when needed."""

    def __init__(self, model: AnyModel) -> None:
        self._model = model

    @lazy
    def loaded(self) -> LoadedModel:
        """The loaded model."""
        return load(self._model)

    @lazy
    def proto(self) -> onnx.ModelProto:
        """The model without its large weights."""
        if isinstance(self._model, onnx.ModelProto):
            return without_weights(self._model)
        if isinstance(self._model, ir.Model | LoadedModel):
            return _without_large_weights(self.loaded)
        if isinstance(self._model, bytes | bytearray | memoryview):
            return without_weights(parse(bytes(self._model), "the given bytes"))
        return without_weights(read(Path(self._model)))

    def has(self, find: "_Check") -> bool:
        """Return True if the check ``find`` also finds a fault in the original."""
        return find(self.loaded, self.proto) is not None or (find is inference_fault and self.fault_with_all_constants is not None)

    @lazy
    def fault_with_all_constants(self) -> str | None:
        """The fault that onnx's inference finds in the original if it knows all constants, or None.

        In a nested graph, onnx does not know the values of constants of outer graphs. Rewrites move constants to other graphs, so
        onnx may know more constants in the rewritten model than in the original. Shape inference may then find a fault in the
        rewritten model and miss the same fault in the original.
        """
        shown = onnx.ModelProto()
        shown.CopyFrom(self.proto)
        show_captured_constants(shown.graph, feedable_inputs(shown))
        return inference_fault(self.loaded, shown)


_Check = Callable[[LoadedModel, onnx.ModelProto], str | None]


def new_fault(before: AnyModel | Original, after: LoadedModel) -> str | None:
    """Return in one line a fault of ``after`` that ``before`` does not have, or None.

    Args:
        before: the original.
        after: the rewritten model.

    Raises:
        UnsupportedModel: onnx and onnxruntime both reject the original as well as the rewritten model.
    """
    original = before if isinstance(before, Original) else Original(before)
    try:
        result = _without_large_weights(after)
    except InvariantBroken as error:
        return str(error)
    shared: list[_Check] = []
    for find in (_broken_invariant, _checker_fault, inference_fault, _crashing_node, _load_fault):
        if find is not _load_fault:
            fault = find(after, result)
        else:
            fault = None if _crashing_node in shared else _loading_fault(after, result)
        if fault is not None and not original.has(find):
            return fault
        shared += [find] if fault is not None else []
    if inference_fault in shared and (
        names := contradictory_outputs(after, result)
    ):  # onnx's full check may still accept the original
        return f"the shapes declared for the outputs {', '.join(map(quoted, names))} contradict those inferred"
    if _load_fault in shared and not _may_have_other_operators(original.loaded.model):
        for find in (_checker_fault, inference_fault):
            if find in shared:
                raise UnsupportedModel(
                    f"The model is not valid: {find(original.loaded, original.proto) or original.fault_with_all_constants}"
                )
    return disagreement(original.proto, result)


def _may_have_other_operators(model: ir.Model) -> bool:
    """Return True if the model uses operators of a domain that neither ONNX nor onnxruntime defines.

    If onnxruntime rejects such a model, the only reason may be that the library of these operators is not registered.
    """
    mine = _ONNXRUNTIMES_OWN | {domain for domain, _, _ in model.functions}
    return any(node.domain in model.opset_imports and node.domain not in mine for node in all_nodes(model.graph))


def _broken_invariant(loaded: LoadedModel, _: onnx.ModelProto) -> str | None:
    try:
        check_invariants(loaded.model, "the last patch")
    except InvariantBroken as error:
        return str(error)
    return None


def _checker_fault(_: LoadedModel, proto: onnx.ModelProto) -> str | None:
    return error_of_onnx(lambda: onnx.checker.check_model(proto))


def _crashing_node(_: LoadedModel, proto: onnx.ModelProto) -> str | None:
    return next((f"it would crash onnxruntime: {risk}" for risk in crash_risks(proto)), None)


def _load_fault(loaded: LoadedModel, proto: onnx.ModelProto) -> str | None:
    return None if crash_risks(proto) else _loading_fault(loaded, proto)


def _loading_fault(loaded: LoadedModel, proto: onnx.ModelProto) -> str | None:
    nodes = sum(1 for _ in all_nodes(loaded.model.graph))
    seconds = max(_LOADING_SECONDS, _SECONDS_A_NODE * nodes)
    pieces = pieces_of(proto) if nodes > _MOST_AT_ONCE else None
    if pieces is not None and all(_error_of(piece, seconds, optimise=False) is None for piece in pieces):
        return None
    optimise = nodes <= _MOST_OPTIMISED
    known = Analysis(loaded.model, {})
    may_crash = optimise and (
        may_crash_loading(proto) or known_sizes(known).largest_fixed()[0] > LARGE_FOLDED or may_run_long(known)
    )
    error = _error_of(proto, seconds, optimise=optimise, may_crash=may_crash)
    return None if error is None else f"onnxruntime says: {error}"


def _error_of(proto: onnx.ModelProto, seconds: float, *, optimise: bool, may_crash: bool = False) -> str | None:
    """Load a model with onnxruntime, and return the error if that fails.

    Return None if the model loads, or if loading takes longer than ``seconds``. If ``may_crash`` is True, the model is loaded in a
    subprocess.
    """
    source = ModelSource(proto, proto.SerializeToString())
    runner: Runner | OwnProcessRunner
    if may_crash:
        runner = OwnProcessRunner(
            source, [], ["CPUExecutionProvider"], True, seconds, Budget(seconds, QUICK_BYTES).process_bytes(0)
        )
        error = runner.error
        runner.close()
    else:
        runner = Runner(source, [], ["CPUExecutionProvider"], on_one_thread, optimise, seconds)
        error = runner.error
    return None if runner.loading_timed_out else error


def _without_large_weights(loaded: LoadedModel) -> onnx.ModelProto:
    """Return the serialised model without its large weights. Their values are not read."""
    values = [value for value in loaded.model.graph.initializers.values() if _is_large(value.const_value)]
    substitutes = [(InitializerSlot(value), _reference(value.const_value)) for value in values if value.const_value is not None]
    with substituted(substitutes):
        whole = to_proto(loaded)
        slim = without_weights(whole)
    loaded.judged = (
        whole if slim is whole and not substitutes and loaded.listed is None and whole.ByteSize() < _KEPT_BYTES else None
    )
    unsettle_initializers(loaded)
    return slim


def _is_large(tensor: ir.TensorProtocol | None) -> bool:
    return tensor is not None and tensor.dtype != ir.DataType.STRING and tensor.nbytes > _LARGE_BYTES


def _reference(tensor: ir.TensorProtocol) -> ir.ExternalTensor:
    shape = ir.Shape(tensor.shape.numpy())
    return ir.ExternalTensor("large", None, None, tensor.dtype, shape=shape, name=tensor.name or "")
