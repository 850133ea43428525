"""Texts and types nested deep, names and lists without end, and names that mean something to somebody."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import onnx

import ortscan
from tests.campaigns.attacks.frame import Box, attack, attack_all_verbs, command, model_of, refused, survived

__all__: list[str] = []

PLAIN = "g (float[T, 4] x) => (float[T, 4] y) { y = Scan <num_scan_inputs = 1, body = b (float[4] a) => (float[4] r) { r = Neg (a) }> (x) }"
DEEP = 20_000
VERBS: tuple[Callable[[Any], Any], ...] = (
    ortscan.optimize,
    ortscan.explain,
    lambda given: ortscan.migrate(given, 21),
    lambda given: ortscan.verify(given, given),
)


def varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def typed(depth: int, kind: int) -> bytes:
    """A model whose input is a sequence (4) or optional (9) of one of one …; protobuf's own writer does not go so deep."""
    inner = b"\x0a\x02\x08\x01"
    for _ in range(depth):
        element = b"\x0a" + varint(len(inner)) + inner
        inner = varint(kind << 3 | 2) + varint(len(element)) + element
    info = b"\x0a\x01x\x12" + varint(len(inner)) + inner
    graph = b"\x12\x01g\x5a" + varint(len(info)) + info
    return b"\x08\x0a\x3a" + varint(len(graph)) + graph + b"\x42\x04\x0a\x00\x10\x12"


def changed(change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    made = model_of(PLAIN)
    change(made)
    return made


def dimension(name: str) -> onnx.ModelProto:
    def change(made: onnx.ModelProto) -> None:
        for info in (*made.graph.input, *made.graph.output):
            info.type.tensor_type.shape.dim[0].dim_param = name

    return changed(change)


def named(name: str) -> onnx.ModelProto:
    def change(made: onnx.ModelProto) -> None:
        made.graph.input[0].name = made.graph.node[0].input[0] = name
        made.graph.node[0].name = made.graph.name = made.producer_name = name

    return changed(change)


DIMENSIONS = {
    "a tower of powers": "9**9**9**9**9",
    "a tower of products": "*".join(["N"] * 20_000),
    "a sum of many": "+".join(f"N{place}" for place in range(5_000)),
    "brackets": "(" * DEEP + "N" + ")" * DEEP,
    "a program": "__import__('os').system('touch ../outside/planted')",
    "a division by zero": "N//0",
    "a word of Python": "lambda",
    "a line end": "N\nM",
    "many letters": "N" * 1_000_000,
}
attack_all_verbs(
    __name__,
    {
        **{f"sequences {depth} deep": partial(typed, depth, 4) for depth in (30, 90, DEEP)},
        f"optionals {DEEP} deep": partial(typed, DEEP, 9),
        **{f"a dimension that is {what}": partial(dimension, name) for what, name in DIMENSIONS.items()},
        "names of a million letters": lambda: named("n" * 1_000_000),
        "names with line ends, quotes and brackets": lambda: named("n\n\r\"'{}%s\x1b[31m"),
        "a tensor of 100 000 axes": lambda: changed(
            lambda made: made.graph.initializer.add(name="w", data_type=1, dims=[1] * 100_000, raw_data=bytes(4))
        ),
        "an input of 100 000 axes": lambda: changed(
            lambda made: made.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, [1] * 100_000))
        ),
        "a Concat of 2 000": lambda: changed(
            lambda made: made.graph.node.add(op_type="Concat", input=["x"] * 2_000, output=["z"]).attribute.add(
                name="axis", type=2, i=0
            )
        ),
        "a Transpose by a million numbers": lambda: changed(
            lambda made: (
                made.graph.node.add(op_type="Transpose", input=["x"], output=["z"])
                .attribute.add(name="perm", type=7)
                .ints.extend(range(1_000_000))
            )
        ),
        "2 000 operator sets": lambda: changed(
            lambda made: [made.opset_import.add(domain=f"d{place}", version=1) for place in range(2_000)]
        ),
        "2 000 functions": lambda: changed(
            lambda made: [
                made.functions.add(name=f"F{place}", domain="f", input=["x"], output=["y"]).node.add(
                    op_type="Neg", input=["x"], output=["y"]
                )
                for place in range(2_000)
            ]
        ),
        "metadata of nested lists": lambda: changed(lambda made: made.metadata_props.add(key="ortscan", value="[" * 100_000)),
    },
)

TEXTS = {
    "m.onnxtxt": '<ir_version: 10, opset_import: ["": 18]> g (float x) => (float y) { '
    + "y = If (x) <then_branch = b () => (float r) { " * DEEP,
    "n.onnxtxt": '<ir_version: 10, opset_import: ["": 18]> g ('
    + "seq(" * DEEP
    + "float"
    + ")" * DEEP
    + " x) => (float y) { y = Neg (x) }",
    "m.textproto": "graph { node { attribute { g { " * DEEP,
    "m.pbtxt": "graph { name: " + '"' * 100_001,
    "m.json": json.dumps({"graph": {}})[:-1] + ', "x": ' + "[" * DEEP,
    "m.onnxjson": '{"graph": ' * DEEP,
    "m.onnx": "\x0a" * DEEP,
}


@attack("texts nested deep, in every form of a file")
def _(box: Box) -> None:
    for name, text in TEXTS.items():
        path = box.work / name
        path.write_text(text)
        for verb in VERBS:
            refused(lambda verb=verb, path=path: verb(path))
        assert command("optimize", path, box.work / "out.onnx")[0] == 1


@attack("bytes that are no model")
def _(box: Box) -> None:
    for given in (b"", b"\x00", b"\xff" * 1000, b"\x3a\xff\xff\xff\x7f", bytes(1 << 20), b"PK\x03\x04", b"\x08\x0a\x3a\x80" * 1000):
        for verb in VERBS:
            survived(lambda verb=verb, given=given: verb(given))
