"""Learn from a model's operators which sizes the free dimensions of its inputs can have.

Two free dimensions may have to be equal, and a free dimension may have to be a certain number:

    x [T, B, I],  MatMul(x, W [5, 8])       ->   I is 5
    x [N],  Add(x, c [7])                   ->   N is 7, or 1
    Scan over x [T, 4] and y [S, 4]         ->   T and S are equal

Generated inputs get sizes that agree with these facts. If a fact is wrong, the original model fails at these sizes, and other
sizes are tried.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise

import onnx_ir as ir

from ortscan.running.analysis import Analysis

__all__ = ["SizeFacts", "learn_sizes"]

_Known = int | str | None
_ELEMENTWISE = (
    "Add Sub Mul Div Pow Mod Min Max Sum Mean And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual Where PRelu "
    "BitwiseAnd BitwiseOr BitwiseXor BitShift"
)
_BROADCASTING = frozenset([*_ELEMENTWISE.split(), "LayerNormalization"])


class _SizeClasses:
    """Free dimensions, grouped into classes of equal size. The size of a class may be known.

    The root of a class is the dimension whose name represents the class. ``parent`` maps the name of each other dimension to
    another name of its class. Repeated look-ups in ``parent`` end at the root. ``numbers`` maps roots to the known sizes of their
    classes.
    """

    def __init__(self) -> None:
        self.parent: dict[str, str] = {}
        self.numbers: dict[str, int] = {}

    def root(self, name: str) -> str:
        while name in self.parent:
            name = self.parent[name]
        return name

    def join(self, left: _Known, right: _Known) -> None:
        if isinstance(left, int):
            left, right = right, left
        if not isinstance(left, str) or right is None:
            return
        root = self.root(left)
        if isinstance(right, int):
            self.numbers.setdefault(root, right)
            return
        target = self.root(right)
        if root != target:
            self.parent[root] = target
            if root in self.numbers:
                self.numbers.setdefault(target, self.numbers.pop(root))


class SizeFacts:
    """The known facts about free dimensions.

    A fact says that two sizes are always equal, or that they are equal unless one of them is 1 and is broadcast. One of the two
    sizes may be a number.
    """

    def __init__(self) -> None:
        self._certain = _SizeClasses()
        self._likely = _SizeClasses()

    def add_equal(self, left: _Known, right: _Known) -> None:
        """Record that two sizes are equal. If two facts contradict each other, the first one counts."""
        self._certain.join(left, right)
        self._likely.join(left, right)

    def add_broadcast(self, left: _Known, right: _Known) -> None:
        """Record that two sizes are equal unless either is 1."""
        if 1 not in (left, right):
            self._likely.join(left, right)

    def groups(self, names: Iterable[str]) -> list[list[list[str]]]:
        """Divide the free dimensions ``names`` into groups, and each group into parts.

        Dimensions in the same part are always equal. Dimensions in different parts of a group are equal unless one of them is 1 and
        is broadcast. For example, in the result [[["T", "S"], ["N"]], [["B"]]], T and S are always equal, and N may also be 1.
        """
        groups: dict[str, dict[str, list[str]]] = {}
        for name in names:
            parts = groups.setdefault(self._likely.root(name), {})
            parts.setdefault(self._certain.root(name), []).append(name)
        return [list(parts.values()) for parts in groups.values()]

    def groups_with_sizes(self, names: Iterable[str]) -> list[tuple[list[list[str]], list[int | None]]]:
        """Return the groups of ``names`` with their known sizes.

        Each group is returned as a pair: its parts, and a list of sizes (None for an unknown size). The list has one size for each
        part, followed by the size that all dimensions of the group have unless they are broadcast.
        """
        return [
            (parts, [*(self.required_size(part[0]) for part in parts), self.likely_size(parts[0][0])])
            for parts in self.groups(names)
        ]

    def allow(self, sizes: Mapping[str, int]) -> bool:
        """Return True if ``sizes`` agree with all known facts."""
        for parts, numbers in self.groups_with_sizes(sizes):
            own = [{sizes[name] for name in part} for part in parts]
            if any(len(part) > 1 for part in own) or len(set().union(*own, numbers) - {1, None}) > 1:
                return False
            if any(number not in (None, *part) for part, number in zip(own, numbers, strict=False)):
                return False
        return True

    def required_size(self, name: str) -> int | None:
        """Return the only size that a dimension can have, or None if that is unknown."""
        return self._certain.numbers.get(self._certain.root(name))

    def likely_size(self, name: str) -> int | None:
        """Return the only size besides 1 that a dimension can have, or None if that is unknown.

        With the size 1, the dimension would be broadcast.
        """
        return self._likely.numbers.get(self._likely.root(name))


def learn_sizes(analysis: Analysis, *, branches: bool = True) -> SizeFacts:
    """Return the facts about sizes that follow from all operators of the model, including those in bodies.

    With ``branches=False``, ignore the operators in branches of Ifs, because a run executes only one of two branches.
    """
    sizes = SizeFacts()
    for node in ir.traversal.RecursiveGraphIterator(analysis.model.graph, recursive=lambda node: branches or node.op_type != "If"):
        _learn_from(node, analysis, sizes)
    return sizes


def _learn_from(node: ir.Node, analysis: Analysis, sizes: SizeFacts) -> None:
    def dim(operand: int, axis: int) -> _Known:
        return analysis.dim(node.inputs[operand], axis)

    def number(name: str, default: int) -> int:
        return node.attributes.get_int(name, default)

    def shapes() -> list[list[_Known]]:
        return [dims for value in node.inputs if (dims := analysis.dims(value))]

    match node.op_type:
        case "MatMul":
            left, right = analysis.dims(node.inputs[0]), analysis.dims(node.inputs[1])
            if left and right:
                sizes.add_equal(left[-1], right[max(len(right) - 2, 0)])
                for a, b in zip(reversed(left[:-2]), reversed(right[:-2]), strict=False):
                    sizes.add_broadcast(a, b)
        case "Gemm":
            left, right = analysis.dims(node.inputs[0]), analysis.dims(node.inputs[1])
            if left and right and len(left) == len(right) == 2:
                sizes.add_equal(left[1 - number("transA", 0)], right[number("transB", 0)])
        case "Concat":
            for first, second in pairwise(shapes()):
                if len(first) == len(second):
                    axis = number("axis", 1) % len(first)
                    for position, (a, b) in enumerate(zip(first, second, strict=True)):
                        if position != axis:
                            sizes.add_equal(a, b)
        case "Conv":
            channels = dim(1, 1)
            if isinstance(channels, int):
                sizes.add_equal(dim(0, 1), channels * number("group", 1))
        case "BatchNormalization":
            sizes.add_equal(dim(0, 1), dim(1, 0))
        case "ReverseSequence":
            sizes.add_equal(dim(0, number("batch_axis", 1)), dim(1, 0))
        case "Einsum":
            terms = node.attributes["equation"].as_string().replace(" ", "").split("->")[0].split(",")
            letters: dict[str, _Known] = {}
            for term, value in zip(terms, node.inputs, strict=False):
                dims = analysis.dims(value)
                if dims is not None and len(dims) == len(term) and "." not in term:
                    for letter, size in zip(term, dims, strict=True):
                        sizes.add_equal(letters.setdefault(letter, size), size)
        case "RNN" | "LSTM" | "GRU" | "DynamicQuantizeLSTM":
            _learn_from_recurrent(node, analysis, sizes)
        case "Scan":
            _learn_from_scan(node, analysis, sizes)
        case kind if kind in _BROADCASTING:
            for first, second in pairwise(shapes()):
                for a, b in zip(reversed(first), reversed(second), strict=False):
                    sizes.add_broadcast(a, b)


def _learn_from_recurrent(node: ir.Node, analysis: Analysis, sizes: SizeFacts) -> None:
    """Learn from the shapes of a recurrent node's inputs which sizes are equal.

    The inputs are X [T, B, I], W [D, gates*H, I], R [D, gates*H, H], lengths [B] and states [D, B, H]. The quantised weights of
    DynamicQuantizeLSTM are transposed: W [D, I, gates*H], R [D, H, gates*H].
    """
    last = 1 if node.op_type == "DynamicQuantizeLSTM" else 2
    x, w, r, _, lengths, *states = [*node.inputs, *[None] * 8][:7]
    sizes.add_equal(analysis.dim(x, 2), analysis.dim(w, last))
    sizes.add_equal(analysis.dim(lengths, 0), analysis.dim(x, 1))
    for state in states:
        sizes.add_equal(analysis.dim(state, 0), analysis.dim(w, 0))
        sizes.add_equal(analysis.dim(state, 1), analysis.dim(x, 1))
        sizes.add_equal(analysis.dim(state, 2), analysis.dim(r, last))


def _learn_from_scan(node: ir.Node, analysis: Analysis, sizes: SizeFacts) -> None:
    body, batched = node.attributes["body"].as_graph(), analysis.model.opset_imports.get("", 1) < 9
    operands = node.inputs[1:] if batched else node.inputs
    states = len(body.inputs) - node.attributes.get_int("num_scan_inputs", 1)
    axes = node.attributes["scan_input_axes"].as_ints() if "scan_input_axes" in node.attributes else None
    steps = [analysis.dim(v, 1 if batched else axes[i] if axes else 0) for i, v in enumerate(operands[states:])]
    batches = [analysis.dim(v, 0) for v in operands] if batched else []
    if batched and node.inputs[0] is not None:
        batches.append(analysis.dim(node.inputs[0], 0))
    for series in (steps, batches):
        for left, right in pairwise(series):
            sizes.add_equal(left, right)
    for formal, result in zip(body.inputs[:states], body.outputs, strict=False):
        for a, b in zip(analysis.dims(formal) or [], analysis.dims(result) or [], strict=False):
            sizes.add_equal(a, b)
