"""Passes for ``onnx_ir.passes``, so that ortscan runs in the pipelines of onnx_ir and onnxscript.

    passes = onnx_ir.passes.Sequential(ortscan.passes.RemoveLoops(), onnx_ir.passes.common.RemoveUnusedNodesPass())
    result = passes(model)

Each pass returns a new model and never changes its input. Inside a ``Sequential``, onnx_ir wraps errors of a pass in its own
``PassError``, whose ``__cause__`` is the ``OrtscanError``.
"""

from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from ortscan.api import migrate, optimize
from ortscan.verb_options import OpsetTarget
from rewrites.graph.walk import all_nodes
from rewrites.loops import is_loop

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ortscan.verb_options import MigrateOptions, OptimizeOptions

__all__ = ["Migrate", "RemoveLoops"]


class RemoveLoops(ir.passes.FunctionalPass):
    """Removes the loops of a model, as ``optimize`` does.

    Args:
        require_all: True to raise ``onnx_ir.passes.PostconditionError`` if a Scan or Loop is left.
        options: the options of ``optimize``.
    """

    def __init__(self, *, require_all: bool = False, **options: "Unpack[OptimizeOptions]") -> None:
        self._require_all = require_all
        self._options: dict[str, Any] = dict(options)

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Return the optimised model. ``modified`` is False if no rule changed the model.

        Raises:
            OrtscanError: as for ``optimize``.
        """
        result, report = optimize(model, report=True, **self._options)
        return ir.passes.PassResult(result, modified=report.changed)

    def ensures(self, model: ir.Model) -> None:
        """Raise ``PostconditionError`` if ``require_all`` is True and a loop is left.

        The message names the first loop that is left.
        """
        if not self._require_all:
            return
        owners: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
        left = [node for owner in owners for node in all_nodes(owner) if is_loop(node)]
        if left:
            name = left[0].name or left[0].outputs[0].name
            raise ir.passes.PostconditionError(
                f"{len(left)} of the loops are left, the first is {left[0].op_type} {name!r}; ortscan.explain(model) says why."
            )


class Migrate(ir.passes.FunctionalPass):
    """Writes a model in another opset, as ``migrate`` does.

    Args:
        opset: a number, ``latest`` or ``auto``.
        options: the options of ``migrate``.
    """

    def __init__(self, opset: int | OpsetTarget, **options: "Unpack[MigrateOptions]") -> None:
        self._opset = opset
        self._options: dict[str, Any] = dict(options)

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Return the migrated model. ``modified`` is True if the opset or the IR version changed.

        Raises:
            MigrationError: a node cannot be written in the opset.
            OrtscanError: as for ``migrate``.
        """
        result = migrate(model, self._opset, **self._options)
        before, after = ((each.opset_imports.get("", 1), each.ir_version) for each in (model, result))
        return ir.passes.PassResult(result, modified=before != after)

    def ensures(self, model: ir.Model) -> None:
        """Raise ``PostconditionError`` if ``opset`` is a number and the model has another opset."""
        opset = model.opset_imports.get("", 1)
        if isinstance(self._opset, int) and opset != self._opset:
            raise ir.passes.PostconditionError(f"the model has opset {opset}, not {self._opset}.")
