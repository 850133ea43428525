"""Functions that call each other so often, or so deep, that nobody can write them out."""

import itertools
from collections.abc import Callable

import onnx

from tests.campaigns.attacks.frame import attack_all_verbs, model_of

__all__: list[str] = []

SCAN = "{} = Scan <num_scan_inputs = 1, body = b (float[4] a) => (float[4] r) {{ r = {} (a) }}> ({})"
LOOP = """n = Constant <value_int = 5> () t = Constant <value = bool {1}> () y = Loop (n, t, x) <body =
  l (int64 i, bool c, float[T, 4] a) => (bool d, float[T, 4] r) { d = Identity (c) r = f.F0 (a) }>"""
IF = """n = Size (x) z = Constant <value_int = 7> () p = Greater (n, z) y = If (p) <then_branch = u () => (float[T, 4] r) { r = f.F0 (x) },
  else_branch = e () => (float[T, 4] s) { s = Neg (x) }>"""
LSTM = """w = Constant <value = float[1, 4, 4] {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}> () o = Constant <value_ints = [1]> ()
  v = Constant <value = float[1, 4, 1] {0, 0, 0, 0}> () k = Unsqueeze (x, o) q, h = RNN <hidden_size = 4> (k, w, w) y = Squeeze (q, o)"""
ENDLESS = "with all calls of its functions expanded; the limit is"
DEEP = "functions that call each other"


def function(name: str, body: str) -> str:
    return f'<domain: "f", opset_import: ["": 18, "f": 1]> {name} (x) => (y) {{ {body} }}'


def tower(levels: int, width: int, main: str, leaf: str = "y = Neg (x)") -> Callable[[], onnx.ModelProto]:
    """Each of ``levels`` functions calls the next ``width`` times."""
    functions = [function(f"F{levels}", leaf)]
    for level in range(levels):
        names = ["x", *(f"v{place}" for place in range(width - 1)), "y"]
        calls = (f"{after} = f.F{level + 1} ({before})" for before, after in itertools.pairwise(names))
        functions.append(function(f"F{level}", " ".join(calls)))
    return lambda: model_of("\n".join([f"g (float[T, 4] x) => (float[T, 4] y) {{ {main} }}", *functions]))


CALL = "y = f.F0 (x)"
attack_all_verbs(
    __name__,
    {
        "ten calls on twelve levels": (tower(12, 10, CALL), ENDLESS),
        "ten calls on twelve levels in a Scan": (tower(12, 10, SCAN.format("y", "f.F0", "x")), ENDLESS),
        "ten calls on twelve levels in a Loop": (tower(12, 10, LOOP), ENDLESS),
        "ten calls on twelve levels in an If": (tower(12, 10, IF), ENDLESS),
        "ten calls on twelve levels that hold a Scan": (tower(12, 10, CALL, SCAN.format("y", "Neg", "x")), ENDLESS),
        "ten calls on twelve levels that hold a recurrent node": (tower(12, 10, CALL, LSTM), ENDLESS),
        "ten calls on twelve levels that nothing calls": (tower(12, 10, "y = Neg (x)"), ENDLESS),
        "a thousand calls on four levels": (tower(4, 1000, CALL), ENDLESS),
        "two calls on sixty levels": (tower(60, 2, CALL), ENDLESS),
        "one call on three thousand levels": (tower(3000, 1, CALL), DEEP),
        "one call on three thousand levels that hold a Scan": (tower(3000, 1, CALL, SCAN.format("y", "Neg", "x")), DEEP),
        "one call on ninety levels": tower(90, 1, CALL, SCAN.format("y", "Neg", "x")),
        "two calls on ten levels": tower(10, 2, CALL),
        "two calls on seven levels that hold a Scan": tower(7, 2, CALL, SCAN.format("y", "Neg", "x")),
        "a function that calls itself": lambda: model_of(
            "\n".join(["g (float[T, 4] x) => (float[T, 4] y) { y = f.F (x) }", function("F", "y = f.F (x)")])
        ),
        "two functions that call each other in Scans": lambda: model_of(
            "\n".join(
                [
                    "g (float[T, 4] x) => (float[T, 4] y) { y = f.F (x) }",
                    function("F", SCAN.format("y", "f.G", "x")),
                    function("G", SCAN.format("y", "f.F", "x")),
                ]
            )
        ),
    },
)
