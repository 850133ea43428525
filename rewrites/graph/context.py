"""What a rule gets beside its subject: options, costs, names, constants, and what it needs from a runtime."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import onnx
import onnx_ir as ir

from rewrites.base.abilities import Abilities, Costs, UnrollLimits
from rewrites.base.report import Fired
from rewrites.base.vetoes import Vetoes
from rewrites.graph.builder import Builder, ConstantPool
from rewrites.graph.names import Names
from rewrites.graph.node_inference import infer_node
from rewrites.graph.walk import all_nodes, node_graphs

__all__ = ["Bidirectional", "Context", "Evaluator", "KernelCheck", "Options", "RuleInUse", "evaluate_nodes"]


Bidirectional = Literal["always", "equal", "narrow", "never"]

Evaluator = Callable[[onnx.ModelProto], Sequence[np.ndarray] | None]
"""Runs a model without inputs and returns its outputs, or None where the runtime cannot run it."""

KernelCheck = Callable[[onnx.ModelProto], bool | None]
"""Tells whether the runtime has a kernel for the one node of a model, or None where it refuses the node for another reason."""


@dataclass(frozen=True)
class Options:
    """What the caller asked for, as far as rules care.

    ``memory_budget``: bytes that the temporaries of one vectorised part may take at a time.
    ``sizes``: typical value of each symbolic dimension, for cost decisions only.
    ``assumed_dim``: what an unknown dimension is taken as where no hint is given.
    ``native_always``: whether recurrent nodes are taken wherever there is one, since the target runs no loops or any.
    ``bidirectional``: where recurrent nodes of two directions become one: always, where their activations are equal, only where
    they are narrow and run on one row, or never.
    ``domains``: operator domains the target runs beside the standard one. ``target``: what else it runs.
    ``unroll``: how far loops are unrolled. ``costs``: what loops and operators take there.
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
    """What one rule may ask of another."""

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def phase(self) -> str:
        """The folder it is in."""

    @property
    def subject(self) -> str:
        """What it looks at."""

    @property
    def recognises(self) -> bool:
        """Whether it takes a recurrence out of its loop as a whole."""

    @property
    def check(self) -> "Callable[[Any, Context], object]":
        """Says what it would do with a subject, or why nothing."""


@dataclass
class Context:
    """The state shared by all rules while one model is rewritten.

    ``rules``: the rules in use, for one that asks what others would do. ``owners``: the nodes last found around graphs.
    ``left_out``: names of rules that the caller wants left out. ``changes``: patches of the model as a whole, made so far.
    ``vetoes``: what must not be done. ``written_out``: steps, as reports call them, that stay written out.
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
        """Make the context of ``model``."""
        names = Names(model)
        return cls(model, options, evaluate, names, ConstantPool(model.graph, names), has_kernel=has_kernel)

    @property
    def opset(self) -> int:
        """The version of the standard operator set the model imports."""
        return self.model.opset_imports.get("", 1)

    def if_around(self, branch: ir.Graph) -> ir.Node | None:
        """Return the If that has ``branch``, or None."""
        owner = self.owners.get(branch)
        if owner is None or owner.graph is None or branch not in node_graphs(owner):
            self.owners.clear()
            for node in all_nodes(self.model.graph):
                self.owners.update(dict.fromkeys(node_graphs(node), node))
            owner = self.owners.get(branch)
        return owner if owner is not None and owner.op_type == "If" and owner.domain == "" else None

    def infer(self, node: ir.Node) -> None:
        """Set type and shape of the results of ``node`` that have none, where its operator tells them."""
        infer_node(node, self.model.opset_imports, self.model.ir_version)

    def builder(self) -> Builder:
        """Return a new, empty Builder."""
        return Builder(self.names, self.constants, self.model.opset_imports, self.model.ir_version)


def evaluate_nodes(
    nodes: Sequence[onnx.NodeProto], constants: Mapping[ir.Value, np.ndarray], wanted: Iterable[ir.Value], ctx: Context
) -> Sequence[np.ndarray] | None:
    """Return what ``nodes`` (producers before users) compute for ``wanted`` from ``constants``; None where the runtime cannot."""
    tensors = [ir.serde.serialize_tensor(ir.tensor(array, name=value.name)) for value, array in constants.items()]
    outputs = [onnx.helper.make_value_info(value.name or "", onnx.TypeProto()) for value in wanted]
    graph = onnx.helper.make_graph(list(nodes), "constants", [], outputs, tensors)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in ctx.model.opset_imports.items()]
    version = max(4, min(ctx.model.ir_version, 10))
    return ctx.evaluate(onnx.helper.make_model(graph, opset_imports=imports, ir_version=version))
