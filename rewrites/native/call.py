"""What a translator is given: the operator as it stands in the body, with its operands as views."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array
from rewrites.native.body import Body, elements
from rewrites.native.refused import Refused
from rewrites.native.views import View

__all__ = ["Call"]


@dataclass(frozen=True)
class Call:
    """One operator to translate."""

    node: ir.Node
    body: Body

    @property
    def opset(self) -> int:
        """The version of the standard operator set."""
        return self.body.opset

    def value(self, index: int) -> ir.Value | None:
        """Return input ``index``, or None where it is absent."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def has(self, index: int) -> bool:
        """Whether input ``index`` is there."""
        return self.value(index) is not None

    def view(self, index: int) -> View:
        """Return the view of input ``index``, which the operator requires."""
        value = self.value(index)
        if value is None:
            raise self.refuse("NATIVE-FORM", f"input {index} is missing")
        return self.body.view(value)

    @property
    def views(self) -> list[View]:
        """The views of all inputs."""
        return [self.view(index) for index in range(len(self.node.inputs))]

    def known(self, index: int) -> np.ndarray | None:
        """Return the numbers of input ``index`` if they are the same in every run, else None."""
        numbers = self.sizes(index)
        is_sample = numbers is not None and const_array(self.value(index)) is None and any(map(self.body.free.has, numbers.flat))
        return None if is_sample else numbers

    def sizes(self, index: int) -> np.ndarray | None:
        """Return the numbers of input ``index``, None if a run computes them; a free size is the number of the sample."""
        value = self.value(index)
        found = const_array(value)
        view = None if value is None or found is not None else self.body.views.get(value)
        return found if view is None or view.buffer.array is None or view.truth else elements(view)

    def only_first_output(self) -> None:
        """Refuse where another output than the first is there."""
        if any(value.name and (value.uses() or value.is_graph_output()) for value in self.node.outputs[1:]):
            raise self.refuse("NATIVE-FORM", "more than its first output is read")

    def refuse(self, code: str, detail: str) -> Refused:
        """Make the exception that refuses, to be raised."""
        name = f" '{self.node.name}'" if self.node.name else ""
        return Refused(code, f"{self.node.op_type}{name}: {detail}")


Translated = Sequence[View]
"""The views of a node's outputs, in order."""
