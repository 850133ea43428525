"""Chains of nodes that double what they are given: its length, its numbers, its text, or the paths that lead to it."""

from collections.abc import Callable

import onnx

from tests.campaigns.attacks.frame import attack_all_verbs, model_of

__all__: list[str] = []

BEFORE = "g (float[T, 4] x, float[1] w) => (float[T, 4] y) {{ {} y = Scan <num_scan_inputs = 1, body = b (float[4] a) => (float[4] r) {{ r = Add (a, q) }}> (x) }}"
IN_BODY = "g (float[T, 4] x, float[1] w) => (float[T, 4] y) {{ y = Scan <num_scan_inputs = 1, body = b (float[4] a) => (float[4] r) {{ {} r = Add (a, q) }}> (x) }}"
WITH_STATE = "g (float[T, 4] x, float[1] w, float[4] h) => (float[4] y) {{ y = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] a) => (float[4] r) {{ {} r = Add (a, s) }}> (h, x) }}"
JOIN = "{1} = Concat <axis = 0> ({0}, {0})"
IF = "{1} = If (p) <then_branch = a{1} () => (float[N] t{1}) {{ t{1} = Concat <axis = 0> ({0}, {0}) }}, else_branch = b{1} () => (float[N] e{1}) {{ e{1} = Neg ({0}) }}>"
TRUE = "p = Constant <value = bool {1}> () "
ONE = "v0 = Constant <value = float[1] {1}> () "
STEP = "i{0} = Add ({0}, one) j{0} = Sub ({0}, two) {1} = Mul (i{0}, j{0})"
FUNCTION = '<domain: "f", opset_import: ["": 18, "f": 1]> F{} (x) => (y) {{ {} }}'
SHAPES = "g (float[T] x, float[S] z) => (float[T] y) {{ one = Constant <value_ints = [1]> () two = Shape (z) v0 = Shape (x) {} q = ConstantOfShape (v{}) k = ReduceMax (q) y = Add (x, k) }}"
PARTS = """s = Constant <value_ints = [16777216]> () u = ConstantOfShape (s) f = SplitToSequence (u)
    o = Constant <value_int = 0> () e = SequenceAt (f, o) q = ReduceMax <keepdims = 0> (e)"""


def chain(link: str, count: int) -> str:
    return " ".join(link.format(f"v{place}", f"v{place + 1}") for place in range(count))


def grown(frame: str, link: str, count: int, first: str = "v0 = Identity (w) ", opset: int = 18) -> Callable[[], onnx.ModelProto]:
    return lambda: model_of(frame.format(f"{first}{chain(link, count)} q = ReduceMax <keepdims = 0> (v{count})"), opset)


def called(count: int, body: str) -> Callable[[], onnx.ModelProto]:
    functions = [FUNCTION.format(place, body.format(place + 1)) for place in range(count)]
    text = IN_BODY.format("v = f.F0 (a) q = ReduceMax <keepdims = 0> (v)")
    return lambda: model_of("\n".join([text, *functions, FUNCTION.format(count, "y = Neg (x)")]))


def loop(step: str, steps: int = 60) -> Callable[[], onnx.ModelProto]:
    return lambda: model_of(
        f"""g (float[1] x) => (float[N] y) {{ n = Constant <value_int = {steps}> () t = Constant <value = bool {{1}}> ()
          y = Loop (n, t, x) <body = b (int64 i, bool c, float[M] a) => (bool d, float[K] r) {{ d = Identity (c) {step} }}> }}"""
    )


def strings(count: int) -> str:
    link = "{1} = StringConcat ({0}, {0})"
    return f'v0 = Constant <value_string = "ab"> () {chain(link, count)} e = Equal (v{count}, v{count}) q = Cast <to = 1> (e)'


attack_all_verbs(
    __name__,
    {
        "Concats before a loop": grown(BEFORE, JOIN, 40),
        "Concats of a constant": grown(BEFORE, JOIN, 40, ONE),
        "seventy Concats before a loop": grown(BEFORE, JOIN, 70),
        "Concats in a body": grown(IN_BODY, JOIN, 40, "v0 = Identity (a) "),
        "Concats of a constant in a body": grown(IN_BODY, JOIN, 40, ONE),
        "Concats of a state": grown(WITH_STATE, JOIN, 40, "v0 = Identity (s) "),
        "Concats of three": grown(BEFORE, "{1} = Concat <axis = 0> ({0}, {0}, {0})", 30),
        "Concats in Ifs": grown(BEFORE, IF, 28, f"{TRUE} v0 = Identity (w) "),
        "Concats in functions": called(40, "a = f.F{} (x) y = Concat <axis = 0> (a, a)"),
        "Concats of calls": called(40, "a = f.F{0} (x) b = Neg (x) y = Concat <axis = 0> (a, a, b)"),
        "a Loop that doubles its state": loop("r = Concat <axis = 0> (a, a)"),
        "a Loop that tiles its state": loop("k = Constant <value_ints = [3]> () r = Tile (a, k)"),
        "a Loop that pairs all of its state": loop(
            "u = Constant <value_ints = [-1, 1]> () f = Constant <value_ints = [-1]> () k = Concat <axis = 0> (a, a)"
            " m = Reshape (k, u) p = Mul (k, m) r = Reshape (p, f)",
            12,
        ),
        "a Loop that doubles in a branch": loop(
            "r = If (c) <then_branch = u () => (float[P] o) { o = Concat <axis = 0> (a, a) }, else_branch = e () => (float[Q] p) { p = Neg (a) }>"
        ),
        "Tiles of Tiles": grown(BEFORE, "{1} = Tile ({0}, k)", 20, "k = Constant <value_ints = [1000]> () v0 = Identity (w) "),
        "strings before a loop": lambda: model_of(BEFORE.format(strings(60)), 20),
        "strings in a body": lambda: model_of(IN_BODY.format(strings(60)), 20),
        "sums of sums": grown(BEFORE, "{1} = Add ({0}, {0})", 300),
        "sums of sums in a body": grown(IN_BODY, "{1} = Add ({0}, {0})", 300, "v0 = Identity (a) "),
        "products of products of a state": grown(WITH_STATE, "{1} = Mul ({0}, {0})", 100, "v0 = Identity (s) "),
        "Wheres of all that was before": grown(
            IN_BODY, "c{1} = Greater ({0}, a) {1} = Where (c{1}, {0}, a)", 100, "v0 = Identity (a) "
        ),
        "sizes that are polynomials": lambda: model_of(SHAPES.format(chain(STEP, 25), 25)),
        "sizes that are squared": lambda: model_of(SHAPES.format(chain("{1} = Mul ({0}, {0})", 60), 60)),
        "sizes that double": lambda: model_of(SHAPES.format(chain("{1} = Add ({0}, {0})", 60), 60)),
        "sixteen million tensors in a sequence": lambda: model_of(BEFORE.format(PARTS)),
        "shapes of shapes": lambda: model_of(SHAPES.format(chain(JOIN, 40), 40)),
        "a cell that is a polynomial": grown(
            WITH_STATE, "i{0} = Add ({0}, a) j{0} = Sub ({0}, s) {1} = Mul (i{0}, j{0})", 40, "v0 = Identity (s) "
        ),
    },
)
