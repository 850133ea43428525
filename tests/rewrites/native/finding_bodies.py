"""Random Scans that read and write by indices, search, choose a branch, have a Scan within and multiply bytes."""

import random
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.rewrites.native.random_bodies import Dims, RandomScan

__all__ = ["finding_scan"]


def finding_scan(seed: int) -> onnx.ModelProto:
    """A Scan with up to two states; all indices are in range."""
    return _Finding(random.Random(seed)).model()


class _Finding(RandomScan):
    def kinds(self) -> list[Callable[[str, Dims], None]]:
        own = [self.indexed, self.best, self.written, self.top, self.branched, self.inner, self.of_bytes]
        return [*own, *own, *super().kinds()]

    def node(self, op: str, inputs: list[str], **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, inputs, [f"v{len(self.nodes)}"], **attributes))
        return str(self.nodes[-1].output[0])

    def index(self, size: int) -> tuple[str, Dims]:
        """Indices of an axis of a size, one for each row of some value."""
        name, dims = self.draw.choice([one for one in self.pool if one[1]] or [(self.constant(np.ones(3, np.float32)), [3])])
        found = self.node(self.draw.choice(["ArgMax", "ArgMin"]), [name], axis=-1, keepdims=0)
        found = self.node("Mod", [found, self.constant(np.array(size, np.int64))])
        return (self.node("Sub", [found, self.constant(np.array(size, np.int64))]) if self.draw.random() < 0.3 else found), dims[
            :-1
        ]

    def axis(self, dims: Dims) -> int | None:
        known = [axis for axis, dim in enumerate(dims) if isinstance(dim, int)]
        return self.draw.choice(known) if known else None

    def indexed(self, x: str, dims: Dims) -> None:
        if (axis := self.axis(dims)) is not None:
            found, own = self.index(int(dims[axis]))
            if len(dims) + len(own) <= 5:
                self.add("Gather", [x, found], [*dims[:axis], *own, *dims[axis + 1 :]], axis=axis)

    def best(self, x: str, dims: Dims) -> None:
        if (axis := self.axis(dims)) is not None:
            found = self.node("ArgMax", [x], axis=axis, select_last_index=self.draw.randint(0, 1))
            self.add("GatherElements", [x, found], [*dims[:axis], 1, *dims[axis + 1 :]], axis=axis)

    def written(self, x: str, dims: Dims) -> None:
        if (axis := self.axis(dims)) is None:
            return
        other = self.draw.choice([name for name, own in self.pool if own == dims])
        row = self.node("Gather", [other, self.ints(self.draw.randrange(int(dims[axis])))], axis=axis)
        if axis == 0 and self.draw.random() < 0.5:
            found = self.node(
                "ArgMax", [self.node("Reshape", [other, self.ints(-1)])] if "B" not in dims else [self.flat()], axis=0
            )
            found = self.node("Reshape", [self.node("Mod", [found, self.constant(np.array(dims[0], np.int64))]), self.ints(1, 1)])
            self.add("ScatterND", [x, found, row], dims)
        else:
            found = self.node("Mod", [self.node("ArgMin", [row], axis=axis), self.constant(np.array(dims[axis], np.int64))])
            self.add("ScatterElements", [x, found, row], dims, axis=axis)

    def flat(self) -> str:
        return self.constant(np.float32([0, 2, 1]))

    def top(self, x: str, dims: Dims) -> None:
        if (axis := self.axis(dims)) is not None:
            count = self.draw.randint(1, int(dims[axis]))
            largest = self.draw.randint(0, 1)
            name = f"v{len(self.nodes)}"
            self.nodes.append(helper.make_node("TopK", [x, self.ints(count)], [name, name + "_at"], axis=axis, largest=largest))
            self.pool.append((name, [*dims[:axis], count, *dims[axis + 1 :]]))
            self.add("Cast", [name + "_at"], [*dims[:axis], count, *dims[axis + 1 :]], to=TensorProto.FLOAT)

    def branched(self, x: str, dims: Dims) -> None:
        whole = self.node("ReduceSum", [x], keepdims=0)
        condition = self.node("Greater", [whole, self.constant(np.array(0.1, np.float32))])
        name = f"v{len(self.nodes)}"

        def branch(kind: str) -> onnx.GraphProto:
            inner = [helper.make_node(self.draw.choice(["Tanh", "Neg", "Identity"]), [x], [f"{name}_{kind}"])]
            return helper.make_graph(inner, kind, [], [helper.make_tensor_value_info(f"{name}_{kind}", TensorProto.FLOAT, dims)])

        self.add("If", [condition], dims, then_branch=branch("then"), else_branch=branch("else"))

    def inner(self, x: str, dims: Dims) -> None:
        if not dims or not isinstance(dims[0], int):
            return
        row = self.node("Gather", [x, self.constant(np.array(0, np.int64))], axis=0)
        name = f"v{len(self.nodes)}"
        g, r, n, o = (f"{name}_{part}" for part in "grno")
        half = numpy_helper.from_array(np.array(0.5, np.float32), f"{name}_half")
        nodes = [
            helper.make_node("Mul", [g, f"{name}_half"], [f"{name}_m"]),
            helper.make_node("Add", [f"{name}_m", r], [n]),
            helper.make_node("Tanh", [n], [o]),
        ]
        infos = [helper.make_tensor_value_info(each, TensorProto.FLOAT, dims[1:]) for each in (g, r, n, o)]
        body = helper.make_graph(nodes, name + "_body", infos[:2], infos[2:], [half])
        ways = {"scan_input_directions": [self.draw.randint(0, 1)]}
        made = [name, name + "_ys"]
        self.nodes.append(helper.make_node("Scan", [row, x], made, body=body, num_scan_inputs=1, **ways))
        self.pool += [(name, dims[1:]), (made[1], dims)]

    def of_bytes(self, x: str, dims: Dims) -> None:
        """Of what is scanned alone: what differs in its last bit may be rounded to another byte."""
        x, dims = self.draw.choice(self.rows)
        if not dims or not isinstance(dims[-1], int):
            return
        kind = self.draw.choice([np.int8, np.uint8])
        size, columns = int(dims[-1]), self.draw.choice([1, 3, 4])
        numbers = np.random.default_rng(self.draw.randrange(99)).integers(0, 100, (size, columns))
        name = f"v{len(self.nodes)}"
        made = [name, name + "_s", name + "_z"]
        self.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], made))
        weights, zero = self.constant(numbers.astype(kind)), self.constant(np.array(self.draw.choice([0, 3]), kind))
        product = self.node("MatMulInteger", [name, weights, made[2], zero])
        self.add("Mul", [self.node("Cast", [product], to=TensorProto.FLOAT), made[1]], [*dims[:-1], columns])
