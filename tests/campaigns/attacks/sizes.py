"""Sizes that no memory holds, or that are none: computed from constants, in a body and before a loop."""

from functools import partial

import onnx

from tests.campaigns.attacks.frame import attack_all_verbs, model_of

__all__: list[str] = []

FRAMES = {
    "before a loop": "g (float[T, 4] x) => (float[T, 4] y) {{ {} y = Scan <num_scan_inputs = 1, body = b (float[4] a) => (float[4] r) {{ r = Add (a, q) }}> (x) }}",
    "in a body": "g (float[T, 4] x) => (float[T, 4] y) {{ y = Scan <num_scan_inputs = 1, body = b (float[4] a) => (float[4] r) {{ {} r = Add (a, q) }}> (x) }}",
}
MANY, LARGEST, LEAST = 1 << 40, (1 << 63) - 1, -(1 << 63)
MAX = "q = ReduceMax <keepdims = 0> (w)"
CAST = "w = Cast <to = 1> (v) q = ReduceMax <keepdims = 0> (w)"
ONE = "u = Constant <value = float[1] {1}> ()"
FOUR = "u = Constant <value = float[4] {1, 2, 3, 4}> ()"
PIXEL = "u = Constant <value = float[1, 1, 1, 1] {1}> ()"


def ints(name: str, *values: int) -> str:
    return f"{name} = Constant <value_ints = [{', '.join(map(str, values))}]> ()"


def integer(name: str, value: int) -> str:
    return f"{name} = Constant <value_int = {value}> ()"


SIZES = {
    "a ConstantOfShape of 2^40": f"{ints('s', MANY)} w = ConstantOfShape (s) {MAX}",
    "a ConstantOfShape of 2^32 by 2^32": f"{ints('s', 1 << 32, 1 << 32)} w = ConstantOfShape (s) {MAX}",
    "a ConstantOfShape of 2^63 - 1": f"{ints('s', LARGEST)} w = ConstantOfShape (s) {MAX}",
    "a ConstantOfShape of -1": f"{ints('s', -1)} w = ConstantOfShape (s) {MAX}",
    "a ConstantOfShape of 4 GiB": f"{ints('s', 1 << 30)} w = ConstantOfShape (s) {MAX}",
    "a Tile": f"{ONE} {ints('s', MANY)} w = Tile (u, s) {MAX}",
    "a tower of Tiles": f"{ONE} {ints('s', 1 << 20)} a1 = Tile (u, s) a2 = Tile (a1, s) w = Tile (a2, s) {MAX}",
    "an Expand": f"{ONE} {ints('s', MANY, 7)} w = Expand (u, s) {MAX}",
    "a Range": f"{integer('z', 0)} {integer('n', MANY)} {integer('o', 1)} v = Range (z, n, o) {CAST}",
    "a Range backwards": f"{integer('z', 0)} {integer('n', -MANY)} {integer('o', -1)} v = Range (z, n, o) {CAST}",
    "a Range to a product": f"{integer('z', 0)} {integer('m', 1 << 20)} n = Mul (m, m) {integer('o', 1)} v = Range (z, n, o) {CAST}",
    "a Range without a step": f"{integer('z', 0)} {integer('n', MANY)} v = Range (z, n, z) {CAST}",
    "a Pad": f"{ONE} {ints('s', MANY, MANY)} w = Pad (u, s) {MAX}",
    "a Pad below zero": f"{ONE} {ints('s', -MANY, -MANY)} w = Pad (u, s) {MAX}",
    "a OneHot": f"{ints('i', 3)} {integer('d', MANY)} c = Constant <value = float[2] {{0, 1}}> () w = OneHot (i, d, c) {MAX}",
    "an EyeLike": f"{ints('s', 1 << 20, 1 << 20)} u = ConstantOfShape (s) w = EyeLike (u) {MAX}",
    "a window": f"{integer('n', MANY)} w = HannWindow (n) {MAX}",
    "a RandomNormal": f"w = RandomNormal <shape = [{1 << 20}, {1 << 20}]> () {MAX}",
    "an outer product": f"{ints('s', 1 << 22, 1)} u = ConstantOfShape (s) v = Transpose (u) w = MatMul (u, v) {MAX}",
    "an outer sum": f"{ints('s', 1 << 22, 1)} u = ConstantOfShape (s) v = Transpose (u) w = Add (u, v) {MAX}",
    "an Einsum of three axes": f'{ints("s", 1 << 14)} u = ConstantOfShape (s) w = Einsum <equation = "a,b,c->abc"> (u, u, u) {MAX}',
    "a Resize": f'{PIXEL} s = Constant <value = float[4] {{1, 1, 1e6, 1e6}}> () w = Resize (u, "", s) {MAX}',
    "a Split of many": f"{ONE} w, w2 = Split <num_outputs = {MANY}> (u) {MAX}",
    "a Split of fewer than it gives": f"{FOUR} w, w2 = Split <num_outputs = 1> (u) {MAX}",
    "a TopK": f"{ONE} {ints('k', MANY)} w, i = TopK (u, k) {MAX}",
    "a Multinomial": f"u = Constant <value = float[1, 2] {{1, 1}}> () v = Multinomial <sample_size = {(1 << 31) - 1}> (u) {CAST}",
    "a ConvTranspose": f"{PIXEL} w = ConvTranspose <output_shape = [{1 << 20}, {1 << 20}], strides = [{1 << 20}, {1 << 20}]> (u, u) {MAX}",
    "a Conv of far dilations": f"{PIXEL} k = Constant <value = float[1, 1, 2, 2] {{1, 1, 1, 1}}> () w = Conv <dilations = [{MANY}, {MANY}], pads = [{MANY}, {MANY}, {MANY}, {MANY}]> (u, k) {MAX}",
    "a MaxPool without a stride": f"{PIXEL} w = MaxPool <kernel_shape = [1, 1], strides = [0, 0]> (u) {MAX}",
    "a Slice of the largest step": f"{FOUR} {ints('s', LEAST)} {ints('e', LARGEST)} {ints('z', 0)} w = Slice (u, s, e, z, e) {MAX}",
    "a Slice of the least step": f"{FOUR} {ints('s', LARGEST)} {ints('e', LEAST)} {ints('z', 0)} w = Slice (u, s, e, z, e) {MAX}",
    "a Gather far outside": f"{FOUR} {ints('s', LEAST)} w = Gather (u, s) {MAX}",
    "a Reshape to more than can be counted": f"{FOUR} {ints('s', 1 << 62, 1 << 62, -1)} w = Reshape (u, s) {MAX}",
    "an Unsqueeze of axis 2^62": f"{FOUR} {ints('s', 1 << 62)} w = Unsqueeze (u, s) {MAX}",
    "a Softmax of axis 2^62": f"{FOUR} w = Softmax <axis = {1 << 62}> (u) {MAX}",
    "a division by zero": f"{integer('n', 5)} {integer('z', 0)} v = Div (n, z) q = Cast <to = 1> (v)",
    "the least integer divided by -1": f"{integer('n', LEAST)} {integer('z', -1)} v = Div (n, z) q = Cast <to = 1> (v)",
    "the least integer modulo -1": f"{integer('n', LEAST)} {integer('z', -1)} v = Mod (n, z) q = Cast <to = 1> (v)",
    "a power of a power": f"{integer('n', 9)} {integer('z', 10**9)} m = Pow (n, z) v = Pow (m, z) q = Cast <to = 1> (v)",
    "a number that is no integer": "n = Constant <value_float = 1e38> () v = Cast <to = 7> (n) q = Cast <to = 1> (v)",
}
IN_BODIES = 2
"""Each second one is tried in a body, the others before a loop, but for those that once did harm."""


def _model(text: str) -> onnx.ModelProto:
    return model_of(text)


attack_all_verbs(
    __name__,
    {
        f"{what} {where}": partial(_model, FRAMES[where].format(nodes))
        for place, (what, nodes) in enumerate(SIZES.items())
        for where in ([list(FRAMES)[place % IN_BODIES]] if "-1" not in what and "Range" not in what else FRAMES)
    },
)
