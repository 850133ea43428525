"""Loops and sequences whose steps nobody can wait for, and recurrent nodes of a width that nobody has."""

from collections.abc import Callable

import onnx

import ortscan
from tests.campaigns.attacks.frame import Box, attack, attack_all_verbs, model_of, survived

__all__: list[str] = []

MANY = 10**15
TRUE = "t = Constant <value = bool {1}> ()"
SUM = "<body = b{0} (int64 i{0}, bool c{0}, int64 s{0}) => (bool d{0}, int64 o{0}) {{ d{0} = Identity (c{0}) n{0} = Constant <value_int = 7> () a{0} = Add (s{0}, i{0}) o{0} = Mod (a{0}, n{0}) }}>"
SIN = "<body = e (int64 i, bool c, float[4] s) => (bool d, float[4] o) { d = Identity (c) o = Sin (s) }>"
STACK = "<body = e (int64 i, bool c) => (bool d, float o) { d = Identity (c) o = Cast <to = 1> (i) }>"
SCAN = "Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] a) => (float[4] n, float[4] r) { p = Mul (s, a) n = Tanh (p) r = Exp (n) }>"
MAP = "Scan <num_scan_inputs = 1, body = b (float[4] a) => (float[4] r) { r = Exp (a) }>"
NAMES = ", ".join(['"Tanh"'] * 100_000)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def loops(nodes: str, opset: int = 18) -> Callable[[], onnx.ModelProto]:
    return lambda: model_of(f"g (float[4] x) => (float[A] y) {{ {TRUE} {nodes} }}", opset)


def nested(depth: int) -> str:
    """Loops in Loops, a million steps each."""
    inner = "o = Sin (s)"
    for level in range(depth):
        body = f"<body = b{level} (int64 i{level}, bool c{level}, float[4] s) => (bool d{level}, float[4] o) {{ d{level} = Identity (c{level}) {inner} }}>"
        inner = f"{'y' if level == depth - 1 else 'o'} = Loop (m, t, {'x' if level == depth - 1 else 's'}) {body}"
    return f"m = Constant <value_int = 1000000> () {inner}"


def steps(count: int, scan: str = SCAN, opset: int = 18) -> Callable[[], onnx.ModelProto]:
    if scan == MAP:
        return lambda: model_of(f"g (float[{count}, 4] x) => (float[{count}, 4] y) {{ y = {MAP} (x) }}", opset)
    return lambda: model_of(
        f"g (float[{count}, 4] x, float[4] h) => (float[4] l, float[{count}, 4] y) {{ l, y = {scan} (h, x) }}", opset
    )


def recurrent(kind: str, width: int, rest: str = "", declared: bool = False, length: int = 2) -> Callable[[], onnx.ModelProto]:
    sizes = (GATES[kind] * width, width) if declared else ("G", "H")
    return lambda: model_of(
        f"g (float[{length}, 1, 3] x, float[1, {sizes[0]}, 3] w, float[1, {sizes[0]}, {sizes[1]}] r) => (float[A, B, C, D] y)"
        f" {{ y, h = {kind} <hidden_size = {width}{rest}> (x, w, r) }}"
    )


COMPUTED = f"m = Constant <value_int = {MANY}> () z = Constant <value_int = 0> () n = Loop (m, t, z) {SUM.format(0)} y = Loop (n, t, x) {SIN}"
TWICE = f"m = Constant <value_int = {MANY}> () z = Constant <value_int = 0> () k = Loop (m, t, z) {SUM.format(0)} n = Loop (k, t, z) {SUM.format(1)} y = Loop (n, t, x) {SIN}"
attack_all_verbs(
    __name__,
    {
        "a trip count that a slow loop computes": loops(COMPUTED),
        "a trip count that two slow loops compute": loops(TWICE),
        "a size that a slow loop computes": loops(
            f"m = Constant <value_int = {MANY}> () z = Constant <value_int = 0> () n = Loop (m, t, z) {SUM.format(0)}"
            " o = Constant <value_ints = [1]> () k = Reshape (n, o) q = ConstantOfShape (k) r = ReduceMax (q) y = Add (x, r)"
        ),
        "a count of 10^15": loops(f"m = Constant <value_int = {MANY}> () y = Loop (m, t, x) {SIN}"),
        "no count and no condition": loops(f'y = Loop ("", "", x) {SIN}'),
        "no count that stacks": loops(f'y = Loop ("", t) {STACK}'),
        "a count of 10^15 that stacks": loops(f"m = Constant <value_int = {MANY}> () y = Loop (m, t) {STACK}"),
        "the least count": loops(f"m = Constant <value_int = {-(1 << 63)}> () y = Loop (m, t, x) {SIN}"),
        "a count without elements": loops(f"m = Constant <value = int64[0] {{}}> () y = Loop (m, t, x) {SIN}"),
        "a condition without elements": loops(
            'm = Constant <value_int = 3> () y = Loop (m, "", x) <body = e (int64 i, bool c, float[4] s) => (bool[0] d, float[4] o)'
            " { d = Constant <value = bool[0] {}> () o = Sin (s) }>"
        ),
        "Loops in Loops": loops(nested(4)),
        "a slow Loop in a Scan": lambda: model_of(
            f"g (float[T, 4] x) => (float[T, 4] y) {{ {TRUE} m = Constant <value_int = {MANY}> () y = Scan <num_scan_inputs = 1, body ="
            f" k (float[4] a) => (float[4] r) {{ r = Loop (m, t, a) {SIN} }}> (x) }}"
        ),
        "a slow Loop in a branch": lambda: model_of(
            f"g (float[4] x, bool p) => (float[4] y) {{ {TRUE} m = Constant <value_int = {MANY}> () y = If (p) <then_branch ="
            f" k () => (float[4] r) {{ r = Loop (m, t, x) {SIN} }}, else_branch = l () => (float[4] u) {{ u = Neg (x) }}> }}"
        ),
        "a slow Loop in a function": lambda: model_of(
            f'g (float[4] x) => (float[4] y) {{ y = f.F (x) }} <domain: "f", opset_import: ["": 18]> F (x) => (y)'
            f" {{ {TRUE} m = Constant <value_int = {MANY}> () y = Loop (m, t, x) {SIN} }}"
        ),
        "10^8 declared steps": steps(10**8),
        "10^8 declared steps of a map": steps(10**8, MAP),
        "2^62 declared steps": steps(1 << 62),
        "2^62 declared steps of a map": steps(1 << 62, MAP),
        "10^8 declared steps of opset 8": lambda: model_of(
            f'g (float[1, {10**8}, 4] x) => (float[1, {10**8}, 4] y) {{ y = {MAP} ("", x) }}', 8
        ),
        **{
            f"{kind} of width {width} {how}": recurrent(kind, width, rest, declared)
            for kind in GATES
            for width, how, rest, declared in (
                (1 << 59, "undeclared", "", False),
                (1 << 59, "batch first", ", layout = 1", True),
                (0, "undeclared", "", False),
                (-1, "undeclared", "", False),
            )
        },
        "10^8 declared steps of an LSTM": recurrent("LSTM", 2, ', direction = "reverse"', True, 10**8),
        "a GRU of a million activations": recurrent("GRU", 2, f", activations = [{NAMES}]", True),
    },
)


@attack("10^8 steps that are built in")
def _(box: Box) -> None:
    for target in ("cpu", "qnn", "onnx"):
        for text, name in ((steps(10**8)(), "x"), (steps(10**8, MAP)(), "x")):
            dims = [10**8, 4]
            survived(
                lambda text=text, name=name, target=target, dims=dims: ortscan.optimize(
                    text, target=target, fix_shapes={name: dims}, verify=False
                )
            )
            survived(lambda text=text, target=target: ortscan.optimize(text, target=target, max_unroll=10**9, verify=False))


@attack("one node that works for hours")
def _(box: Box) -> None:
    model = model_of(
        "g (float[T, 4] x) => (float[T, 4] y) { s = Constant <value_ints = [1, 1, 3000, 3000]> () u = ConstantOfShape (s) m = ReduceMax"
        " <keepdims = 0> (x) v = Add (u, m) p = MaxPool <kernel_shape = [1500, 1500]> (v) q = ReduceMax <keepdims = 0> (p) y = Add (x, q) }"
    )
    assert ortscan.verify(model, model, time_limit=0.4).outcome == "inconclusive"
