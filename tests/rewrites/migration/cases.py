"""One or more cases for each operator that changed its spelling or meaning between opset 8 and the newest and that onnxruntime runs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from ortscan.ort.installed import newest_opset
from tests.rewrites.migration.holders import Case

__all__ = ["CASES"]

B, F, D, H, I32, I64, U8, I8 = (
    TensorProto.BOOL,
    TensorProto.FLOAT,
    TensorProto.DOUBLE,
    TensorProto.FLOAT16,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.UINT8,
    TensorProto.INT8,
)
Arrays = Mapping[str, np.ndarray]

BEFORE_28 = min(27, newest_opset())
"""The newest opset for operators of which onnxruntime has no kernel in 28."""


def _x(*shape: int, dtype: Any = np.float32, seed: int = 0, positive: bool = False) -> np.ndarray:
    numbers = np.random.default_rng(seed).standard_normal(shape) * 3
    return np.asarray(np.abs(numbers) + 0.1 if positive else numbers, dtype=dtype)


def _ints(*items: Any, dtype: Any = np.int64) -> np.ndarray:
    return np.array(items, dtype=dtype)


def _floats(*items: float) -> np.ndarray:
    return np.array(items, dtype=np.float32)


def _many(
    opset: int,
    nodes: Sequence[str],
    x: np.ndarray,
    constants: Arrays | None = None,
    y: int = F,
    newest: int = newest_opset(),
    scannable: bool = True,
    **more: int,
) -> Iterator[Case]:
    for node in nodes:
        outputs = {name: kind for name, kind in {"y": y, **more}.items() if name in node.split("=")[0].replace(",", " ").split()}
        yield Case(node, opset, {"x": x}, constants or {}, outputs, newest, scannable)


def _products() -> Iterator[Case]:
    """Of what a Transpose gives with a vector, which onnxruntime gets wrong from opset 9 on."""
    vector = {"v": _floats(1, 10, 100)}
    yield Case("z = Transpose (x)\ny = MatMul (z, v)", 8, {"x": _x(3, 2)}, vector, scannable=False)
    yield Case("t = Transpose (x)\nz = Identity (t)\ny = MatMul (z, v)", 8, {"x": _x(3, 2)}, vector, scannable=False)
    yield Case("z = Transpose <perm = [0, 2, 1]> (x)\ny = MatMul (z, v)", 8, {"x": _x(2, 3, 4)}, vector, scannable=False)


def _softmax() -> Iterator[Case]:
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        for opset in (8, 12):
            yield from _many(opset, [f"y = {op} (x)", f"y = {op} <axis = 0> (x)", f"y = {op} <axis = 2> (x)"], _x(2, 3, 4))
        yield from _many(11, [f"y = {op} <axis = -2> (x)"], _x(2, 3, 4))
        yield from _many(11, [f"y = {op} <axis = 1> (x)"], _x(2, 5, 1, 1))
        yield from _many(9, [f"y = {op} (x)"], _x(2, 3, 0))
        if op != "Hardmax":
            yield from _many(9, [f"y = {op} (x)"], _x(2, 3, 4, dtype=np.float64), y=D)
        yield from _many(13, [f"y = {op} <axis = 1> (x)"], _x(2, 3, 4))


def _reductions() -> Iterator[Case]:
    for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"):
        op, x, newest = f"Reduce{name}", _x(2, 3, 4, positive=True), BEFORE_28 if name == "LogSumExp" else newest_opset()
        yield from _many(8, [f"y = {op} (x)", f"y = {op} <axes = [0, 2], keepdims = 0> (x)"], x, newest=newest)
        yield from _many(11, [f"y = {op} <axes = [-1]> (x)", f"y = {op} <keepdims = 0> (x)"], x, newest=newest)
        yield from _many(13, [f"y = {op} (x)"], x, newest=newest)
        if name != "Sum":
            yield from _many(13, [f"y = {op} <axes = [1]> (x)"], x, newest=newest)
    yield from _many(
        11, ["y = ReduceSum <axes = [1]> (x)", "y = ReduceMax <axes = [1]> (x)"], _ints([[1, 2], [-3, 4]], dtype=np.int32), y=I32
    )


def _arg() -> Iterator[Case]:
    x = np.round(_x(3, 4, 2))
    for op in ("ArgMax", "ArgMin"):
        yield from _many(8, [f"y = {op} (x)", f"y = {op} <axis = 1, keepdims = 0> (x)"], x, y=I64)
        yield from _many(12, [f"y = {op} <axis = -1, select_last_index = 1> (x)"], x, y=I64)


def _pools() -> Iterator[Case]:
    x = _x(1, 2, 7, 8)
    same = ["SAME_UPPER", "SAME_LOWER", "VALID"]
    for op in ("AveragePool", "MaxPool", "LpPool"):
        text = [
            f"y = {op} <kernel_shape = [3, 2], strides = [2, 3]> (x)",
            f"y = {op} <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 0, 2, 1]> (x)",
            *[f'y = {op} <kernel_shape = [3, 2], strides = [2, 3], auto_pad = "{pad}"> (x)' for pad in same],
        ]
        yield from _many(8, text, x)
        yield from _many(11, [text[1], text[2]], x)
    yield from _many(8, ["y = LpPool <kernel_shape = [2, 2], p = 1> (x)", "y = LpPool <kernel_shape = [2, 2], p = 3> (x)"], x)
    yield from _many(8, ["y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (x)"], x)
    for count in (0, 1):
        node = f"y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], ceil_mode = 1, count_include_pad = {count}> (x)"
        for opset in (10, 11, 19):
            yield from _many(opset, [node], x)
    for opset in (10, 12):
        yield from _many(
            opset,
            [
                "y, i = MaxPool <kernel_shape = [3, 2], strides = [2, 3], ceil_mode = 1, storage_order = 1> (x)",
                "y, i = MaxPool <kernel_shape = [2, 2], dilations = [2, 3]> (x)",
            ],
            x,
            i=I64,
        )
        past_the_end = "y = MaxPool <kernel_shape = [3, 3], strides = [3, 3], pads = [1, 1, 1, 1], ceil_mode = 1> (x)"
        yield from _many(opset, [past_the_end], x, scannable=False)
    yield from _many(8, ["y, i = MaxPool <kernel_shape = [2, 2], storage_order = 1> (x)"], x, i=I64)


def _convolutions() -> Iterator[Case]:
    for pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        node = f'y = Conv <auto_pad = "{pad}", strides = [2, 2]> (x, w)'
        yield Case(node, 9, {"x": _x(1, 2, 6, 7)}, {"w": _x(3, 2, 3, 2, seed=1)})
        node = f'y = ConvTranspose <auto_pad = "{pad}", strides = [2, 2]> (x, w)'
        yield Case(node, 9, {"x": _x(1, 2, 4, 5)}, {"w": _x(2, 3, 3, 3, seed=1)})
    yield Case(
        "y = ConvTranspose <output_shape = [10, 12], strides = [2, 2]> (x, w)",
        9,
        {"x": _x(1, 2, 4, 5)},
        {"w": _x(2, 3, 3, 3, seed=1)},
    )


def _normalizations() -> Iterator[Case]:
    channel = {name: _x(3, seed=i, positive=True) for i, name in enumerate(("s", "b", "m", "v"), 1)}
    feature = {name: _x(3, 4, seed=i, positive=True) for i, name in enumerate(("s", "b", "m", "v"), 1)}
    for opset in (8, 9, 14):
        yield from _many(opset, ["y = BatchNormalization <epsilon = 0.01, momentum = 0.5> (x, s, b, m, v)"], _x(2, 3, 4), channel)
    yield from _many(8, ["y = BatchNormalization <spatial = 1> (x, s, b, m, v)"], _x(2, 3, 4), channel)
    yield from _many(8, ["y = BatchNormalization <spatial = 0> (x, s, b, m, v)"], _x(2, 3, 4), feature)
    image = _x(2, 3, 2, 2)
    yield from _many(
        8, ["y = MeanVarianceNormalization (x)", "y = MeanVarianceNormalization <across_channels = 1> (x)"], image, scannable=False
    )
    groups = {"s": _x(2, seed=1), "b": _x(2, seed=2)}
    yield from _many(
        18,
        ["y = GroupNormalization <num_groups = 2> (x, s, b)", "y = GroupNormalization <num_groups = 2, epsilon = 0.1> (x, s, b)"],
        _x(2, 4, 3, 2),
        groups,
    )
    doubles = {name: value.astype(np.float64) for name, value in groups.items()}
    yield from _many(18, ["y = GroupNormalization <num_groups = 2> (x, s, b)"], _x(2, 4, 3, dtype=np.float64), doubles, y=D)


def _casts() -> Iterator[Case]:
    x = _x(3, 4) * 40
    for to, kind in ((6, I32), (7, I64), (9, B), (11, D), (10, H)):
        yield from _many(8, [f"y = Cast <to = {to}> (x)"], x, y=kind)
    yield from _many(13, ["y = Cast <to = 3> (x)"], x, y=I8)
    yield Case("y = CastLike (x, like)", 15, {"x": x}, {"like": _ints(0)}, {"y": I64})
    yield Case("f = Cast <to = 17> (x)\ny = Cast <to = 1> (f)", 19, {"x": x * 20})
    yield Case("f = Cast <to = 17, saturate = 0> (x)\ny = Cast <to = 1> (f)", 19, {"x": x * 20})


def _clips() -> Iterator[Case]:
    x = np.concatenate([_x(5), _floats(np.inf, -np.inf, np.nan, 3.4028234e38)])
    texts = ["y = Clip (x)", "y = Clip <min = -1.5> (x)", "y = Clip <max = 2.0> (x)", "y = Clip <min = -1.0, max = 1.0> (x)"]
    more = ["y = Clip <min = 0.0, max = 3.4028234663852886e38> (x)"]
    yield from _many(8, [*texts, *more], x)
    yield from _many(10, texts, x)
    yield from _many(8, texts, np.array([-np.inf, -1, 1, np.inf], np.float16), y=TensorProto.FLOAT16)
    yield from _many(11, ["y = Clip (x, low, high)", "y = Clip (x, , high)"], x, {"low": np.float32(-1), "high": np.float32(1)})
    yield from _many(12, ["y = Clip (x, low)"], _ints(-3, 0, 5), {"low": np.array(-1)}, y=I64)


def _constants() -> Iterator[Case]:
    x = _floats(1, 2)
    yield Case("c = Constant <value = float[2] {3.0, 4.0}> ()\ny = Add (x, c)", 8, {"x": x})
    yield Case("c = Constant <value_floats = [3.0, 4.0]> ()\ny = Add (x, c)", 12, {"x": x})
    yield Case("c = Constant <value_int = 1> ()\ni = Cast <to = 7> (x)\ny = Add (i, c)", 12, {"x": x}, {}, {"y": I64})


def _signal() -> Iterator[Case]:
    real, pairs = _x(1, 6, 4, 1), _x(1, 6, 4, 2)
    for node in ("y = DFT (x)", "y = DFT <axis = 2, onesided = 1> (x)", "y = DFT <axis = 1> (x, n)"):
        yield from _many(17, [node], real, {"n": np.array(5)})
    yield from _many(17, ["y = DFT <inverse = 1> (x)", "y = DFT <axis = -2, inverse = 1> (x)"], pairs)
    yield from _many(19, ["y = DFT <axis = 2> (x)"], pairs)


def _quantization() -> Iterator[Case]:
    per_tensor, per_axis = (
        {"s": np.float32(0.1), "z": np.uint8(7)},
        {"s": _floats(0.1, 0.2, 0.3), "z": _ints(3, 5, 7, dtype=np.uint8)},
    )
    bytes_ = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    for opset in (10, 13, 19):
        yield from _many(
            opset, ["y = QuantizeLinear (x, s, z)", "y = QuantizeLinear (x, s)"], _x(2, 3, 4), per_tensor, y=U8, newest=BEFORE_28
        )
        yield from _many(opset, ["y = DequantizeLinear (x, s, z)"], bytes_, per_tensor, newest=BEFORE_28)
    for opset in (13, 21):
        yield from _many(
            opset,
            ["y = QuantizeLinear (x, s, z)", "y = QuantizeLinear <axis = -2> (x, s, z)"],
            _x(2, 3, 4),
            per_axis,
            y=U8,
            newest=BEFORE_28,
        )
        yield from _many(opset, ["y = DequantizeLinear (x, s, z)"], bytes_, per_axis, newest=BEFORE_28)
    blocks = {"s": _x(2, 3, 2, positive=True), "z": np.ones((2, 3, 2), np.uint8)}
    yield from _many(21, ["y = DequantizeLinear <axis = 2, block_size = 2> (x, s, z)"], bytes_, blocks, newest=BEFORE_28)
    yield from _many(21, ["y = QuantizeLinear <axis = 2, block_size = 2> (x, s, z)"], _x(2, 3, 4), blocks, y=U8, newest=BEFORE_28)


def _recurrent() -> Iterator[Case]:
    steps, batch, width, hidden = 3, 2, 4, 5
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            weights = {
                "w": _x(count, gates * hidden, width, seed=1) / 5,
                "r": _x(count, gates * hidden, hidden, seed=2) / 5,
                "b": _x(count, 2 * gates * hidden, seed=3) / 5,
                "n": _ints(3, 2, dtype=np.int32),
                "h": _x(count, batch, hidden, seed=4),
            }
            states = {"h_out": F, "c_out": F} if op == "LSTM" else {"h_out": F}
            names = ", ".join(states)
            node = f'y, {names} = {op} <direction = "{direction}", hidden_size = {hidden}> (x, w, r, b, n, h)'
            yield from _many(8, [node], _x(steps, batch, width), weights, **states)
        node = f"y = {op} <layout = 1, hidden_size = {hidden}> (x, w, r)"
        if op != "RNN":
            plain = f"y = {op} <hidden_size = {hidden}> (x, w, r)"
            yield from _many(
                14, [plain], _x(steps, batch, width), {name: value[:1] for name, value in weights.items() if name in "wr"}
            )
    weights = {"w": _x(1, 15, 4, seed=1) / 5, "r": _x(1, 15, 5, seed=2) / 5}
    yield from _many(8, ["y = GRU <linear_before_reset = 1, hidden_size = 5> (x, w, r)"], _x(3, 2, 4), weights)


def _gathers() -> Iterator[Case]:
    yield from _many(11, ["y = GatherND (x, i)"], _x(3, 4, 2), {"i": _ints([0, 1], [-1, 2])})
    yield from _many(12, ["y = GatherND <batch_dims = 1> (x, i)"], _x(3, 4, 2), {"i": _ints([1], [-1], [0])})
    indices, updates = _ints([0, 2, 1]), _floats([7, 8, 9])
    for op, opset in (("Scatter", 9), ("Scatter", 10), ("ScatterElements", 11), ("ScatterElements", 13)):
        nodes = [f"y = {op} (x, i, u)", f"y = {op} <axis = 1> (x, i, u)"]
        yield from _many(opset, nodes, _x(3, 4), {"i": indices, "u": updates.reshape(1, 3)})
    yield from _many(
        16, ['y = ScatterElements <axis = 1, reduction = "add"> (x, i, u)'], _x(3, 4), {"i": indices, "u": updates.reshape(1, 3)}
    )
    for opset in (11, 13):
        yield from _many(opset, ["y = ScatterND (x, i, u)"], _x(3, 2), {"i": _ints([0], [2]), "u": _x(2, 2, seed=1)})
    yield from _many(16, ['y = ScatterND <reduction = "mul"> (x, i, u)'], _x(3, 2), {"i": _ints([0], [0]), "u": _x(2, 2, seed=1)})


def _matrices() -> Iterator[Case]:
    weights = {"w": _x(3, 4, seed=1), "c": _x(4, seed=2)}
    for opset in (8, 9, 11):
        yield from _many(opset, ["y = Gemm <alpha = 0.5, beta = 2.0> (x, w, c)"], _x(2, 3), weights)
        yield from _many(opset, ["y = Gemm <transA = 1> (x, w, c)"], _x(3, 2), weights)
    yield from _many(11, ["y = Gemm (x, w)"], _x(2, 3), weights)


def _sampling() -> Iterator[Case]:
    grid = {"g": np.clip(_x(1, 3, 3, 2, seed=1) / 4, -1.2, 1.2).astype(np.float32)}
    modes = [
        f'y = GridSample <mode = "{mode}", align_corners = {corners}> (x, g)'
        for mode in ("bilinear", "nearest", "bicubic")
        for corners in (0, 1)
    ]
    yield from _many(
        16, [*modes, "y = GridSample (x, g)", 'y = GridSample <padding_mode = "reflection"> (x, g)'], _x(1, 2, 4, 5), grid
    )
    yield from _many(20, ['y = GridSample <mode = "cubic"> (x, g)'], _x(1, 2, 4, 5), grid)
    rois = {"r": _floats([0.5, 0.5, 4.2, 3.1], [1, 0, 3, 3]), "b": _ints(0, 0)}
    nodes = [
        f'y = RoiAlign <output_height = 2, output_width = 3, spatial_scale = 0.9, mode = "{m}", sampling_ratio = {s}> (x, r, b)'
        for m in ("avg", "max")
        for s in (0, 2)
    ]
    yield from _many(10, nodes, _x(1, 2, 6, 6), rois, newest=21)
    yield from _many(16, nodes[:1], _x(1, 2, 6, 6), rois, newest=21)
    yield from _many(8, ["y = DepthToSpace <blocksize = 2> (x)"], _x(1, 8, 2, 3))
    yield from _many(11, ['y = DepthToSpace <blocksize = 2, mode = "CRD"> (x)'], _x(1, 8, 2, 3))
    yield from _many(13, ["y = SpaceToDepth <blocksize = 2> (x)"], _x(1, 2, 4, 6))


def _resizing() -> Iterator[Case]:
    x = _x(1, 2, 4, 5)
    for scales in ([1, 1, 2, 3], [1, 1, 1.3, 2.7], [1, 1, 1, 1]):
        numbers = str([float(scale) for scale in scales])
        for mode in ("nearest", "linear"):
            yield from _many(8, [f'y = Upsample <mode = "{mode}", scales = {numbers}> (x)'], x)
            yield from _many(9, [f'y = Upsample <mode = "{mode}"> (x, s)'], x, {"s": _floats(*scales)})
            yield from _many(10, [f'y = Resize <mode = "{mode}"> (x, s)'], x, {"s": _floats(*scales)})
    for scales in ([1, 1, 0.6, 0.6], [1, 1, 0.5, 1], [1, 1, 0.6, 1.7], [1, 1, 2.3, 0.4]):
        for mode in ("nearest", "linear"):
            yield from _many(10, [f'y = Resize <mode = "{mode}"> (x, s)'], x, {"s": _floats(*scales)})
    for scales in ([1, 1, 0.6, 1.7], [1, 1, 2, 2], [1, 1, 0.5, 0.7]):
        yield Case("y = Resize (x, s)", 10, {"x": x, "s": _floats(*scales)})
        yield Case('y = Resize <mode = "linear"> (x, s)', 10, {"x": x, "s": _floats(*scales)})
    yield Case("y = Upsample (x, s)", 9, {"x": x, "s": _floats(1, 1, 2, 1.5)})
    empty = {"none": _floats(), "s": _floats(1, 1, 1.6, 0.7), "n": _ints(1, 2, 7, 3)}
    for mode in ("nearest", "linear", "cubic"):
        for coordinates in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"):
            attributes = f'mode = "{mode}", coordinate_transformation_mode = "{coordinates}"'
            yield from _many(
                11, [f"y = Resize <{attributes}> (x, none, s)", f"y = Resize <{attributes}> (x, none, none, n)"], x, empty
            )
    for rounding in ("round_prefer_ceil", "floor", "ceil"):
        yield from _many(11, [f'y = Resize <nearest_mode = "{rounding}"> (x, none, s)'], x, empty)
    yield from _many(13, ["y = Resize (x, , s)", "y = Resize (x, none, , n)"], x, empty)
    yield from _many(18, ['y = Resize <mode = "linear", antialias = 1> (x, , s)'], x, empty)
    crop = {"roi": _floats(0, 0, 0.1, 0.2, 1, 1, 0.8, 1.1), "none": _floats(), "n": _ints(1, 2, 3, 3)}
    node = 'y = Resize <mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = 9.0> (x, roi, none, n)'
    yield from _many(11, [node], x, crop)


def _movement() -> Iterator[Case]:
    x = _x(3, 4)
    for opset in (8, 10):
        pads = ["y = Pad <pads = [1, 0, 2, 1]> (x)", "y = Pad <pads = [1, 0, -1, 2], value = 1.5> (x)"]
        modes = [f'y = Pad <pads = [1, 2, 2, 1], mode = "{mode}"> (x)' for mode in ("reflect", "edge")]
        yield from _many(opset, [*pads, *modes], x)
    yield from _many(8, ["y = Pad <pads = [1, 1], value = 0.1> (x)"], _x(3, dtype=np.float64), y=D)
    yield from _many(13, ["y = Pad (x, p, v)"], x, {"p": _ints(1, 0, 2, 1), "v": np.float32(2)})
    yield from _many(8, ["y = Slice <starts = [1], ends = [3]> (x)"], x)
    yield from _many(8, ["y = Slice <starts = [0, -3], ends = [-1, 1000], axes = [1, 0]> (x)"], x, scannable=False)
    yield from _many(9, ["y = Slice <starts = [1], ends = [9223372036854775807], axes = [1]> (x)"], x)
    yield from _many(10, ["y = Slice (x, s, e, a, t)"], x, {"s": _ints(3), "e": _ints(0), "a": _ints(1), "t": _ints(-2)})
    yield from _many(8, ["y, z = Split <axis = 1> (x)", "y, z = Split <axis = 1, split = [3, 1]> (x)", "y = Split (x)"], x, z=F)
    yield from _many(11, ["y, z = Split <axis = -1, split = [1, 3]> (x)"], x, z=F)
    yield from _many(13, ["y, z = Split <axis = 1> (x)", "y, z = Split <axis = 1> (x, n)"], x, {"n": _ints(1, 3)}, z=F)
    thin = _x(1, 3, 1)
    yield from _many(8, ["y = Squeeze <axes = [0]> (x)", "y = Squeeze (x)", "y = Squeeze <axes = [0, 2]> (x)"], thin)
    yield from _many(11, ["y = Squeeze <axes = [-1]> (x)", "y = Unsqueeze <axes = [-1, 0]> (x)"], thin)
    yield from _many(8, ["y = Unsqueeze <axes = [0]> (x)", "y = Unsqueeze <axes = [3, 1]> (x)"], thin)
    yield from _many(8, ["y = Reshape (x, s)"], x, {"s": _ints(0, 2, -1)})
    yield from _many(14, ["y = Reshape <allowzero = 1> (x, s)"], _x(0, 4), {"s": _ints(2, 0)})
    yield from _many(14, ["y = Reshape <allowzero = 1> (x, s)"], _x(0, 4), {"s": _ints(-1, 2)})
    yield from _many(8, ["y = Shape (x)"], x, y=I64)
    yield from _many(15, ["y = Shape <start = -1> (x)"], x, y=I64)
    yield from _many(8, ["y, i = TopK <k = 2> (x)", "y, i = TopK <k = 2, axis = 0> (x)"], np.round(x), i=I64)
    yield from _many(10, ["y, i = TopK <axis = 1> (x, k)"], np.round(x), {"k": _ints(3)}, i=I64)
    yield from _many(11, ["y, i = TopK <largest = 0, axis = -1> (x, k)"], np.round(x), {"k": _ints(3)}, i=I64)
    yield from _many(8, ["y = Flatten <axis = 2> (x)"], _x(2, 3, 4))
    yield from _many(11, ["y = Flatten <axis = -1> (x)"], _x(2, 3, 4))
    yield from _many(8, ["y = Dropout <ratio = 0.3> (x)", "y = Dropout (x)", "y = Dropout <ratio = 0.5> (x)"], x)
    yield from _many(8, ["y, m = Dropout <ratio = 0.3> (x)"], x)
    yield from _many(10, ["y = Dropout <ratio = 0.3> (x)", "y, m = Dropout <ratio = 0.9> (x)"], x)
    yield from _many(13, ["y = Dropout (x, r)"], x, {"r": np.float32(0.2)})


def _others() -> Iterator[Case]:
    for opset in (9, 10):
        inside = Case("y = OneHot <axis = 0> (i, d, v)", opset, {"i": _ints(0, 2, 5)}, {"d": np.array(4), "v": _floats(0, 1)})
        yield inside
    yield Case("o = Optional (x)\ny = OptionalHasElement (o)", 15, {"x": _x(2)}, {}, {"y": B}, newest=BEFORE_28)
    yield Case("o = Optional (x)\ny = OptionalGetElement (o)", 15, {"x": _x(2)}, newest=BEFORE_28)
    yield from _many(9, ["y = EyeLike <k = 1> (x)"], _x(3, 4))
    yield from _many(
        11, ["y = Range (x, to, by)"], np.array(-1.5, np.float32), {"to": np.float32(3), "by": np.float32(0.7)}, scannable=False
    )
    yield from _many(11, ['y = BitShift <direction = "LEFT"> (x, n)'], _ints(1, 5, 9, dtype=np.uint8), {"n": np.uint8(3)}, y=U8)
    yield from _many(10, ["y = Mod (x, two)"], _ints(3, -4, -5), {"two": _ints(2)}, y=I64)
    yield from _many(10, ["y = Mod <fmod = 1> (x, x2)"], _x(5), {"x2": _x(5, seed=1)})
    yield from _many(9, ["y = Compress <axis = 1> (x, c)"], _x(2, 3), {"c": np.array([True, False, True])}, scannable=False)
    yield from _many(
        8, ["y = LRN <size = 3> (x)", "y = InstanceNormalization (x, s, b)"], _x(1, 3, 4, 2), {"s": _x(3), "b": _x(3, seed=1)}
    )
    yield from _many(9, ["y = PRelu (x, s)", "y = Gather <axis = 1> (x, i)"], _x(2, 3), {"s": _x(3, seed=1), "i": _ints(0, -1)})
    yield from _many(
        8,
        ["y = Max (x, s)", "y = Sum (x, s)", "y = Pow (x, t)", "y = Expand (x, n)"],
        _x(2, 3),
        {"s": _x(3), "t": _floats(2), "n": _ints(2, 2, 3)},
    )
    q, k, v = _x(1, 2, 3, 4), _x(1, 2, 5, 4, seed=1), _x(1, 2, 5, 4, seed=2)
    mask = np.where(_x(3, 5, seed=3) > 0, 0, -1.0).astype(np.float32)
    for opset in (23,):
        for node in (
            "y = Attention <is_causal = 0> (x, k, v, m)",
            "y = Attention <softcap = 2.0, scale = 0.3> (x, k, v, m)",
            "y = Attention <is_causal = 1> (x, x, x)",
        ):
            yield from _many(opset, [node], q, {"k": k, "v": v, "m": mask}, newest=24)


CASES: list[Case] = [
    case
    for group in (
        _products, _softmax, _reductions, _arg, _pools, _convolutions, _normalizations, _casts, _clips, _constants, _signal, _quantization,
        _recurrent, _gathers, _matrices, _sampling, _resizing, _movement, _others,
    )
    for case in group()
]  # fmt: skip
