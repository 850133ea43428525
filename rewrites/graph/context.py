"""The context of a rule: the model, its names and constants, the caller's options, and a runtime."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import onnx
import onnx_ir as ir

from rewrites.base.abilities import Abilities, Costs, UnrollLimits
from rewrites.base.report import Fired
from rewrites.base.vetoes import Vetoes
from rewrites.graph.builder import Builder, ConstantPool, tensor_of
from rewrites.graph.names import Names
from rewrites.graph.node_inference import infer_node
from rewrites.graph.walk import all_nodes, node_graphs

__all__ = ["Bidirectional", "Context", "Evaluator", "KernelCheck", "Options", "RuleInUse", "evaluate_nodes"]


Bidirectional = Literal["always", "equal", "narrow", "never"]

Evaluator = Callable[[onnx.ModelProto], Sequence[np.ndarray] | None]
"""Runs a model without inputs and returns its outputs, or None if the runtime cannot run it."""

KernelCheck = Callable[[onnx.ModelProto], bool | None]
"""Returns True if the runtime has a kernel for the only node of a model. None: the runtime refuses the node for another reason."""


@dataclass(frozen=True)
class Options:
    """The caller's options that affect rules.

    Args:
        memory_budget: The most bytes that temporaries may take at a time if all steps of a loop run at once.
        sizes: A typical value of each symbolic dimension. Only decisions about costs use it.
        assumed_dim: The size that decisions about costs assume for a dimension without a typical value.
        fast_math: True if rewrites may round differently, or change the results for infinite numbers.
        custom_ops: True if operators without a kernel in onnxruntime may run in wider types or as calls to Python.
        native_always: True if recurrent nodes (RNN, GRU, LSTM) are always preferred, because the target has no loops or runs
            recurrent nodes fast.
        bidirectional: When two recurrent nodes of opposite directions become one: "always", "equal" (if their activations are
            equal), "narrow" (if their hidden size is small and they run on one row), or "never".
        domains: Operator domains that the target supports besides the standard domain.
        target: Other abilities of the target.
        costs: The costs of loops and operators on the target.
        unroll: The limits up to which loops are unrolled.
    """

    memory_budget: int = 256 << 20
    sizes: Mapping[str, int] = field(default_factory=dict)
    assumed_dim: int = 64
    fast_math: bool = False
    custom_ops: bool = False
    native_always: bool = False
    bidirectional: Bidirectional = "always"
    domains: frozenset[str] = frozenset({"ai.ortscan", "com.microsoft"})
    target: Abilities = field(default_factory=Abilities)
    unroll: UnrollLimits = field(default_factory=UnrollLimits)
    costs: Costs = field(default_factory=Costs)


class RuleInUse(Protocol):
    """The properties of a rule that other rules can read."""

    @property
    def name(self) -> str:
        """Return the name of the rule."""

    @property
    def phase(self) -> str:
        """Return the package that contains the rule."""

    @property
    def subject(self) -> str:
        """Return what the rule rewrites, for example ``"loop"`` or ``"recurrent node"``."""

    @property
    def recognises(self) -> bool:
        """Return True if the rule replaces whole loops that compute a certain recurrence, such as an LSTM."""

    @property
    def check(self) -> "Callable[[Any, Context], object]":
        """Return the function that tries the rule.

        Called with a loop or node and the context, the function returns a patch, or the reason why the rule does not apply.
        """


@dataclass
class Context:
    """The state that all rules share while one model is rewritten.

    Args:
        evaluate: A function that runs a small model without inputs.
        has_kernel: A function that returns True if the runtime has a kernel for the only node of a model. None if unknown.
        names: The names of the model.
        constants: The shared constants of the model.
        rules: The rules in use. Some rules depend on what other rules would do.
        left_out: Names of rules that the caller skips.
        changes: The patches applied so far by rules on the complete model.
        owners: A cache that maps each nested graph to the node that contains it. Entries may be outdated.
        vetoes: The vetoes of the run. Each forbids a rule to change a loop or node.
        written_out: The loops that the model contains in unrolled form and that must stay so, by their names in reports.
    """

    model: ir.Model
    options: Options
    evaluate: Evaluator
    names: Names
    constants: ConstantPool
    rules: Sequence[RuleInUse] = ()
    left_out: frozenset[str] = frozenset()
    changes: list[Fired] = field(default_factory=list)
    has_kernel: KernelCheck | None = None
    owners: dict[ir.Graph, ir.Node] = field(default_factory=dict)
    vetoes: Vetoes = field(default_factory=Vetoes)
    written_out: frozenset[str] = frozenset()

    @classmethod
    def of(cls, model: ir.Model, options: Options, evaluate: Evaluator, has_kernel: KernelCheck | None = None) -> "Context":
        """Return the context of ``model``."""
        names = Names(model)
        return cls(model, options, evaluate, names, ConstantPool(model.graph, names), has_kernel=has_kernel)

    @property
    def opset(self) -> int:
        """Return the version of the standard operator set that the model imports."""
        return self.model.opset_imports.get("", 1)

    def if_around(self, branch: ir.Graph) -> ir.Node | None:
        """Return the If to which ``branch`` belongs, or None if the graph ``branch`` is no branch of an If."""
        owner = self.owners.get(branch)
        if owner is None or owner.graph is None or branch not in node_graphs(owner):
            self.owners.clear()
            for node in all_nodes(self.model.graph):
                self.owners.update(dict.fromkeys(node_graphs(node), node))
            owner = self.owners.get(branch)
        return owner if owner is not None and owner.op_type == "If" and owner.domain == "" else None

    def infer(self, node: ir.Node) -> None:
        """Set the missing types and shapes of the results of ``node`` if its operator determines them."""
        infer_node(node, self.model.opset_imports, self.model.ir_version)

    def builder(self) -> Builder:
        """Return a new, empty Builder."""
        return Builder(self.names, self.constants, self.model.opset_imports, self.model.ir_version)


def evaluate_nodes(
    nodes: Sequence[onnx.NodeProto], constants: Mapping[ir.Value, np.ndarray], wanted: Iterable[ir.Value], ctx: Context
) -> Sequence[np.ndarray] | None:
    """Run ``nodes``, which are in topological order, and return the arrays of the values ``wanted``.

    ``constants``: the arrays of all values that the nodes read from outside. Return None if the runtime cannot run the nodes.
    """
    tensors = [ir.serde.serialize_tensor(tensor_of(array, value.name)) for value, array in constants.items()]
    outputs = [onnx.helper.make_value_info(value.name or "", onnx.TypeProto()) for value in wanted]
    graph = onnx.helper.make_graph(list(nodes), "constants", [], outputs, tensors)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in ctx.model.opset_imports.items()]
    version = max(4, min(ctx.model.ir_version, 10))
    return ctx.evaluate(onnx.helper.make_model(graph, opset_imports=imports, ir_version=version))
