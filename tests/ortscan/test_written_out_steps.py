"""Recurrences that an exporter unrolled become one native node; otherwise the model stays exactly the same."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import onnx
import onnx.numpy_helper
import pytest

import ortscan
from tests.support.corpus import CorpusModel, corpus_models
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text, parsed

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
GEMMS = "gx{t} = Gemm <transB = 1> ({x}, W{l}, b{l}) gh{t} = Gemm <transB = 1> ({h}, R{l}, c{l}) "
CELLS = {
    "RNN": GEMMS + "g{t} = Add (gx{t}, gh{t}) {y} = {tanh} (g{t})",
    "GRU": GEMMS + "xr{t}, xz{t}, xn{t} = Split <axis = 1, num_outputs = 3> (gx{t}) hr{t}, hz{t}, hn{t} = Split <axis = 1, num_outputs = 3> (gh{t}) "
    "ar{t} = Add (xr{t}, hr{t}) r{t} = Sigmoid (ar{t}) az{t} = Add (xz{t}, hz{t}) z{t} = Sigmoid (az{t}) rn{t} = Mul (r{t}, hn{t}) "
    "an{t} = Add (xn{t}, rn{t}) n{t} = {tanh} (an{t}) d{t} = Sub ({h}, n{t}) zd{t} = Mul (z{t}, d{t}) {y} = Add (n{t}, zd{t})",
    "LSTM": GEMMS + "g{t} = Add (gx{t}, gh{t}) ai{t}, af{t}, ag{t}, ao{t} = Split <axis = 1, num_outputs = 4> (g{t}) "
    "i{t} = Sigmoid (ai{t}) f{t} = Sigmoid (af{t}) n{t} = {tanh} (ag{t}) o{t} = Sigmoid (ao{t}) k{t} = Mul (f{t}, {c}) "
    "m{t} = Mul (i{t}, n{t}) {cy} = Add (k{t}, m{t}) tc{t} = Tanh ({cy}) {y} = Mul (o{t}, tc{t})",
}  # fmt: skip


def layer(kind: str, rows: Sequence[str], number: str, *, back: bool = False, odd: int | None = None) -> tuple[str, list[str]]:
    """Return the text of a layer over `rows` and the names of its results in order. Step `odd` has another activation."""
    lines, results, order = [], {}, list(enumerate(rows))
    h, c = "zero", "zero"
    for t, x in reversed(order) if back else order:
        y, cy = f"h{number}_{t}", f"s{number}_{t}"
        tanh = "Relu" if t == odd else "Tanh"
        lines.append(CELLS[kind].format(t=f"{number}_{t}", l=number, x=x, h=h, y=y, c=c, cy=cy, tanh=tanh))
        h, c, results[t] = y, cy, y
    return " ".join(lines), [results[t] for t in range(len(rows))]


def written(
    kind: str, *, steps: int = 6, layers: int = 1, both: bool = False, odd: int | None = None, last: bool = False
) -> onnx.ModelProto:
    """Return `layers` of cells of width 4 over [steps, 2, 4], in one or both directions, with all results stacked or only the
    last.
    """
    rng, rows, lines, weights, width = np.random.default_rng(0), [f"x{t}" for t in range(steps)], [], {"zero": np.zeros((2, 4))}, 4
    for number in range(layers):
        results = []
        for way in ("f", "b") if both else ("f",):
            text, found = layer(kind, rows, f"{number}{way}", back=way == "b", odd=odd)
            lines.append(text)
            results.append(found)
            for name, shape in (
                ("W", (4 * GATES[kind], width)),
                ("R", (4 * GATES[kind], 4)),
                ("b", (4 * GATES[kind],)),
                ("c", (4 * GATES[kind],)),
            ):
                weights[f"{name}{number}{way}"] = rng.standard_normal(shape) / 2
        rows, width = results[0], 8 if both else 4
        if both:
            rows = [f"j{number}_{t}" for t in range(steps)]
            lines += [f"{row} = Concat <axis = 1> ({one}, {other})" for row, one, other in zip(rows, *results, strict=True)]
    reads = " ".join(f"x{t} = Gather (xs, i{t})" for t in range(steps))
    numbers = ", ".join(["int64[1] k = {0}", *(f"int64 i{t} = {{{t}}}" for t in range(steps))])
    joined = " ".join(f"u{t} = Unsqueeze ({row}, k)" for t, row in enumerate(rows))
    end = f"ys = Neg ({rows[-1]})" if last else f"{joined} ys = Concat <axis = 0> ({', '.join(f'u{t}' for t in range(steps))})"
    size = f"2,{width}" if last else f"{steps},2,{width}"
    text = f"g (float[{steps},2,4] xs) => (float[{size}] ys) <{numbers}> {{ {reads} {' '.join(lines)} {end} }}"
    model = parsed(text, weights={name: array.astype(np.float32) for name, array in weights.items()})
    onnx.checker.check_model(model)
    return model


def nodes(model: onnx.ModelProto) -> list[str]:
    return [onnx.printer.to_text(node) for node in model.graph.node]


def left(model: onnx.ModelProto, **options: object) -> Counter[str]:
    found = Counter(node.op_type for node in ortscan.optimize(model, **options).graph.node)
    assert not found["Scan"]
    return found


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize(("layers", "both"), [(1, False), (2, False), (1, True), (2, True)])
def test_cells_written_out_are_native_nodes(kind: str, layers: int, both: bool) -> None:
    found = left(written(kind, layers=layers, both=both))
    assert layers <= found[kind] <= layers * (2 if both else 1)
    assert not found["Sigmoid"] + found["Tanh"] + found["Gemm"]


@pytest.mark.parametrize("kind", CELLS)
def test_the_last_result_alone_is_enough(kind: str) -> None:
    assert left(written(kind, last=True))[kind] == 1


@pytest.mark.parametrize("kind", CELLS)
def test_a_model_with_one_odd_step_comes_back_as_it_was(kind: str) -> None:
    model = written(kind, odd=3)
    assert nodes(ortscan.optimize(model)) == nodes(model)


def test_what_no_rule_makes_better_than_a_loop_stays_written_out() -> None:
    model = written("RNN")
    for node in model.graph.node:
        if node.op_type == "Tanh":
            node.op_type = "Sin"
    report = ortscan.explain(model)
    assert not report.changed
    assert nodes(ortscan.optimize(model)) == nodes(model)


SQUEEZED = "s{t} = Slice (xs, j{t}, j{u}, k) x{t} = Squeeze (s{t}, k)"


def open_ended(model: onnx.ModelProto, reads: str) -> onnx.ModelProto:
    """Return `model` for any number of rows. It uses the first six, and reads them in another way."""
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "T"
    if reads != "Gather":
        for node in [node for node in model.graph.node if node.op_type == "Gather"]:
            t, at = int(node.output[0][1:]), list(model.graph.node).index(node)
            text = f"g () => (float y) {{ {reads.format(t=t, u=t + 1)} }}"
            model.graph.node.remove(node)
            for each in reversed(onnx.parser.parse_graph(text).node):
                model.graph.node.insert(at, each)
        numbers = {f"j{t}": np.array([t]) for t in range(7)}
        model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in numbers.items())
    return model


@pytest.mark.parametrize("reads", ["Gather", SQUEEZED])
@pytest.mark.parametrize("kind", CELLS)
def test_the_number_of_rows_need_not_be_known(kind: str, reads: str) -> None:
    model = open_ended(written(kind), reads)
    after = ortscan.optimize(model)
    assert [node.op_type for node in after.graph.node].count(kind) == 1
    for rows in (6, 9):
        feeds = {"xs": np.random.default_rng(rows).standard_normal((rows, 2, 4)).astype(np.float32)}
        assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
    for each in (model, after):
        with pytest.raises(Exception, match=r"out of data bounds|must be 1"):
            ort_run(each, {"xs": np.zeros((3, 2, 4), np.float32)})


ALONE = "s{t} = Slice (xs, j{t}, j{u}, k) "


@pytest.mark.parametrize(
    "reads", ["x{t} = Gather (xs, m{t})", f"{ALONE} x{{t}} = Reshape (s{{t}}, rows)", f"{ALONE} x{{t}} = Squeeze (s{{t}})"]
)
def test_rows_that_may_be_missing_without_a_word_stay(reads: str) -> None:
    model = open_ended(written("RNN"), reads)
    numbers = {f"m{t}": np.array(t - 6) for t in range(6)} | {"rows": np.array([-1, 4])}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in numbers.items())
    assert nodes(ortscan.optimize(model)) == nodes(model)


UNROLLED = [
    "loop-to-scan",
    "scan-axes",
    "trip-count",
    "constant-condition",
    "induction-states",
    "unroll",
    "fold-constants",
    "identities",
    "dead-code",
]
SHIPPED = {"jax2onnx__linen_bidir_lstm": "LSTM", "post__ortext__jax2onnx__scan_lstm": "LSTM"}


@pytest.mark.parametrize("model", corpus_models(only=SHIPPED.__contains__))
def test_a_loop_unrolled_and_rolled_up_again_is_as_good(model: CorpusModel) -> None:
    unrolled = ortscan.optimize(model.path, passes=UNROLLED, max_unroll=100, verify=False)
    assert not {"Scan", "Loop"} & {node.op_type for node in unrolled.graph.node}
    assert left(unrolled)[SHIPPED[model.name]] >= 1


READS = {
    "by Gather": "".join(f"i{t} = Constant <value_int = {t}> () x{t} = Gather (xs, i{t}) " for t in range(6)),
    "by Slice": "a = Constant <value_ints = [0]> () "
    + "".join(
        f"b{t} = Constant <value_ints = [{t}]> () e{t} = Constant <value_ints = [{t + 1}]> () s{t} = Slice (xs, b{t}, e{t}, a) x{t} = Squeeze (s{t}, a) "
        for t in range(6)
    ),
    "by Split": "".join(
        [", ".join(f"s{t}" for t in range(6)), " = Split <num_outputs = 6> (xs) a = Constant <value_ints = [0]> () "]
        + [f"x{t} = Squeeze (s{t}, a) " for t in range(6)]
    ),
}


@pytest.mark.parametrize("reads", READS.values(), ids=READS)
def test_it_is_said_that_rows_of_what_has_no_rank_are_not_looked_at(reads: str) -> None:
    steps = "".join(f"p{t} = Add ({f'h{t - 1}' if t else 'h'}, x{t}) h{t} = Tanh (p{t}) " for t in range(6))

    def said(declared: str) -> list[str]:
        model = model_from_text(f"g ({declared} xs, float[2,4] h) => (float[2,4] h5) {{ {reads} {steps} }}", 18, check=False)
        return [each for each in ortscan.explain(model).messages if "rank" in each]

    unknown = "6 rows of 'xs' are read one by one, perhaps by unrolled steps: declare its rank to find these"
    assert said("float[]") == [unknown]
    assert not said("float[6,2,4]")
