"""A structural defect of a model is reported in one sentence when the model is loaded, and never leads to a worse model."""

import time
from collections.abc import Callable

import onnx
import onnx_ir as ir
import pytest

import ortscan
from rewrites.base.errors import InvariantBroken, MalformedLoop, OrtscanError, UnsupportedModel
from tests.support.text import parsed

BODY = "b (float[2] a) => (float[2] o) { o = Softmax <axis = 0> (a) }"
SCAN = f"y = Scan <num_scan_inputs = 1, body = {BODY}> (x)"


def model(nodes: str = SCAN, inputs: str = "float[3, 2] x", version: int = 18, outputs: str = "float[A, B] y") -> onnx.ModelProto:
    return parsed(f'<ir_version: 4, opset_import: ["": {version}]> g ({inputs}) => ({outputs}) {{ {nodes} }}')


def with_tensor(**fields: object) -> onnx.ModelProto:
    proto = model(SCAN.replace("Softmax <axis = 0> (a)", "Add (a, w)"))
    proto.graph.initializer.append(onnx.TensorProto(name="w", **{"dims": [2], "data_type": 1, "raw_data": bytes(8), **fields}))
    return proto


def changed(change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    proto = model()
    change(proto)
    return proto


def body_of(proto: onnx.ModelProto) -> onnx.GraphProto:
    return next(attribute.g for attribute in proto.graph.node[0].attribute if attribute.name == "body")


def nested(depth: int) -> ir.Model:
    def branch(left: int) -> ir.Graph:
        node = level(left)
        return ir.Graph([], node.outputs, nodes=[node], name="branch")

    def level(left: int) -> ir.Node:
        if not left:
            node = ir.node("Identity", [x])
        else:
            node = ir.node("If", [c], {"then_branch": branch(left - 1), "else_branch": branch(0)})
        node.outputs[0].name, node.outputs[0].type, node.outputs[0].shape = f"v{left}", x.type, x.shape
        return node

    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))
    c = ir.Value(name="c", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
    node = level(depth)
    return ir.Model(ir.Graph([x, c], node.outputs, nodes=[node], name="g", opset_imports={"": 18}), ir_version=8)


DEFECTS: dict[str, tuple[Callable[[], object], str]] = {
    "attribute of another kind": (
        lambda: model(SCAN.replace("axis = 0", "axis = 0.5")),
        "axis has the type FLOAT, but must be INT",
    ),
    "attribute outside bodies": (lambda: model("y = Concat <axis = 0.5> (x, x)"), "axis has the type FLOAT"),
    "attribute nobody knows": (
        lambda: model(SCAN.replace("axis = 0", "axes = 0")),
        "an attribute 'axes' that its operator does not have",
    ),
    "attribute left out": (lambda: model("y = Concat (x, x)"), "axis is missing"),
    "too many inputs": (lambda: model(SCAN.replace("(a) }", "(a, a) }")), "has 2 inputs, but takes 1"),
    "too few inputs": (lambda: model("y = Add (x)"), "has 1 inputs, but takes 2"),
    "an input left out": (lambda: model('y = Add ("", x)'), "omits a required input"),
    "too many outputs": (lambda: model("y, z = Neg (x)"), "has 2 outputs, but takes 1"),
    "more parts than are said": (lambda: model("y, z, u = Split <num_outputs = 2> (x)"), "has 3 outputs, but num_outputs is 2"),
    "fewer outputs than it says": (lambda: model(f"y = Split <num_outputs = {1 << 40}> (x)"), f"num_outputs is {1 << 40}"),
    "an operator that is none": (lambda: model(SCAN.replace("Softmax <axis = 0>", "Blub")), "is not an operator in opset 18"),
    "a constant of nowhere": (
        lambda: model("k = nowhere.Constant <value_ints = [1]> () u = Unsqueeze (x, k) y = Squeeze (u, k)"),
        "has the domain 'nowhere', which is not imported",
    ),
    "an operator of nowhere in a body": (
        lambda: model(SCAN.replace("Softmax <axis = 0>", "nowhere.Softmax")),
        "has the domain 'nowhere'",
    ),
    "an operator of later": (lambda: model("y = Mish (x)", version=17), "is not an operator in opset 17"),
    "two values of one name": (lambda: model("y = Neg (x) y = Abs (x)"), "Output 'y' is redeclared"),
    "bytes that do not fit": (lambda: with_tensor(raw_data=bytes(7)), "has 7 bytes, but its type and shape [2] need 8"),
    "entries that do not fit": (lambda: with_tensor(raw_data=None, float_data=[1.0]), "has 1 entries of float_data, but"),
    "data of another type": (lambda: with_tensor(raw_data=None, data_type=7, float_data=[1, 2]), "has 0 entries of int64_data"),
    "a type that is none": (lambda: with_tensor(data_type=77), "has the element type 77, which is not defined"),
    "a tensor without type": (lambda: with_tensor(data_type=0), "has the element type 0, which is not defined"),
    "a negative size": (lambda: with_tensor(dims=[-2]), "has the shape [-2]"),
    "more axes than anybody has": (lambda: with_tensor(dims=[1] * 1025, raw_data=bytes(4)), "has 1025 axes, more than 1024"),
    "more axes declared than anybody has": (
        lambda: changed(
            lambda proto: body_of(proto).input[0].type.tensor_type.shape.dim.extend([onnx.TensorShapeProto.Dimension()] * 1025)
        ),
        "axes, more than 1024",
    ),
    "more than can be counted": (lambda: with_tensor(dims=[1 << 40, 1 << 40]), "more elements than can be counted"),
    "a declared type that is none": (
        lambda: changed(lambda proto: setattr(body_of(proto).input[0].type.tensor_type, "elem_type", 99)),
        "'a' in body of Scan '' in the main graph has the element type 99",
    ),
    "an opset beyond numbers": (
        lambda: changed(lambda proto: setattr(proto.opset_import[0], "version", 1 << 40)),
        f"imports version {1 << 40} of the operator set ''",
    ),
    "graphs 60 deep": (lambda: nested(60), "nested more than 31 deep"),
    "graphs 400 deep": (lambda: nested(400), "nested more than 31 deep"),
}
VERBS = (ortscan.optimize, ortscan.explain, lambda given: ortscan.migrate(given, 21))


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_one_sentence(defect: str) -> None:
    make, sentence = DEFECTS[defect]
    given = make()
    for verb in VERBS:
        with pytest.raises(UnsupportedModel) as error:
            verb(given)
        assert sentence in str(error.value)
        assert str(error.value).isprintable()


CONTRADICTIONS = {
    "lengths": ("float[3, 2] x, float[2, 2] z", "(a, c)", "(x, z)", 18, "inputs differ in their steps: 3 in 'x', but 2 in 'z'"),
    "rank of the element": ("float[3] x, float[3, 2] z", "(a, c)", "(x, z)", 18, "declares [2] for 'a', but 'x' gives []"),
    "size of the element": ("float[3, 2] x, float[3, 5] z", "(a, c)", "(x, z)", 18, "declares [2] for 'c', but 'z' gives [5]"),
    "a scalar": ("float x, float[3, 2] z", "(a, c)", "(x, z)", 18, "include a scalar, which has no axis to scan"),
    "longest lengths": ("float[1, 3, 2] x, float[1, 2, 2] z", "(a, c)", '("", x, z)', 8, "differ in their steps: 3 in 'x', but 2"),
    "rows": ("float[1, 3, 2] x, float[4, 3, 2] z", "(a, c)", '("", x, z)', 8, "differ in their rows: 1 in 'x', but 4 in 'z'"),
    "element without rows": (
        "float[1, 3, 2] x, float[1, 3] z",
        "(a, c)",
        '("", x, z)',
        8,
        "declares [2] for 'c', but 'z' gives []",
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_scan_that_contradicts_what_it_is_given_is_one_sentence(case: str) -> None:
    inputs, read, given, version, sentence = CONTRADICTIONS[case]
    scan = f"y = Scan <num_scan_inputs = 2, body = b (float[2] a, float[2] c) => (float[2] o) {{ o = Add {read} }}> {given}"
    for verb in VERBS:
        with pytest.raises(MalformedLoop) as error:
            verb(model(scan, inputs, version))
        assert sentence in str(error.value)


def test_sizes_that_are_free_or_computed_contradict_nothing() -> None:
    scan = "z = Identity (z0) y = Scan <num_scan_inputs = 2, body = b (float[2] a, float[2] c) => (float[2] o) { o = Add (a, c) }> (x, z)"
    for inputs in ("float[3, 2] x, float[T, 2] z0", "float[3, N] x, float[3, M] z0", "float[-1, 2] x, float[3, 2] z0"):
        result = ortscan.optimize(model(scan, inputs))
        assert isinstance(result, onnx.ModelProto)
        assert [node.op_type for node in result.graph.node] == ["Identity", "Add"]


def test_operators_that_only_onnxruntime_has_are_taken_as_they_are() -> None:
    proto = model(
        SCAN + " z = com.microsoft.Gelu (y) w = LayerNormalization (z, s)", "float[3, 2] x, float[2] s", 16, "float[A, B] w"
    )
    result = ortscan.optimize(proto)
    assert isinstance(result, onnx.ModelProto)
    assert [node.op_type for node in result.graph.node] == ["Softmax", "Gelu", "LayerNormalization"]


def test_graphs_nested_too_deep_cost_nothing() -> None:
    given = nested(400)
    before = time.process_time()
    with pytest.raises(UnsupportedModel):
        ortscan.optimize(given)
    assert time.process_time() - before < 2


def test_names_of_a_megabyte_and_of_several_lines_are_cut_and_escaped() -> None:
    for name in ("n" * 1_000_000, "a\nb\r\x1b[31m", "a b " * 100_000, "\ufeff\u202e"):
        proto = model(SCAN.replace("num_scan_inputs = 1", "num_scan_inputs = 7"))
        proto.graph.node[0].name = name
        with pytest.raises(OrtscanError) as error:
            ortscan.optimize(proto)
        assert str(error.value).isprintable()
        assert len(str(error.value)) < 1000
        assert "num_scan_inputs is 7" in str(error.value)


def test_what_ortscan_itself_does_wrong_is_said_to_be_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    space: dict[str, object] = {"__name__": "rewrites.somewhere"}
    exec("def fails(*_):\n    raise KeyError('lost')", space)  # as if raised in a module of ours
    monkeypatch.setattr("ortscan.pipeline.preparation.load", space["fails"])
    with pytest.raises(InvariantBroken, match="a defect of ortscan; please report it: KeyError: 'lost'") as error:
        ortscan.optimize(model())
    assert isinstance(error.value.__cause__, KeyError)


@pytest.mark.parametrize(
    "error", [MemoryError(), KeyboardInterrupt(), TimeoutError("alarm"), ValueError("a caller's own")], ids=repr
)
def test_what_is_not_of_the_model_goes_through_as_it_came(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("ortscan.pipeline.preparation.load", fails)
    with pytest.raises(type(error)) as found:
        ortscan.optimize(model())
    assert found.value is error


def test_sizes_below_zero_are_free_ones() -> None:
    loop = (
        'y = Loop <body = b (int64 i, bool c, float[-1] s) => (bool k, float[-1] t) { k = Identity (c) t = Add (s, s) }> (n, "", x)'
    )
    proto = model(loop, "float[-1] x, int64 n", outputs="float[-1] y")
    proto.graph.node[0].attribute[0].g.input[0].type.tensor_type.shape.dim.add(dim_value=-3)
    result = ortscan.optimize(proto)
    assert isinstance(result, onnx.ModelProto)
    assert not result.graph.input[0].type.tensor_type.shape.dim[0].HasField("dim_value")


def test_a_model_without_outputs_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match="has no outputs"):
        ortscan.optimize(changed(lambda proto: proto.graph.ClearField("output")))


def test_bytes_that_are_no_text_are_refused_wherever_a_text_is_wanted() -> None:
    for marked in ("producer_name", "doc_string", "graph.name", "graph.doc_string", "graph.input"):
        proto = model()
        if marked == "graph.input":
            proto.graph.input[0].name = proto.graph.node[0].input[0] = "mark"
        elif marked.startswith("graph."):
            setattr(proto.graph, marked.removeprefix("graph."), "mark")
        else:
            setattr(proto, marked, "mark")
        with pytest.raises(UnsupportedModel, match="not UTF-8"):
            ortscan.optimize(proto.SerializeToString().replace(b"mark", b"\xff\xfe\xfd\xfc"))


def test_a_model_that_neither_onnx_nor_onnxruntime_takes_is_not_made_into_another() -> None:
    contradictory = SCAN.replace("o = Softmax <axis = 0> (a)", "i = Cast <to = 7> (a) o = Add (a, i)")
    declared = model(SCAN.replace("float[2] o", "int64[2] o"), outputs="int64[A, B] y")
    assert ortscan.optimize(declared) == declared
    for given in (model(contradictory), model(SCAN + " w = Reshape (y, y)", outputs="float[A, B] w")):
        with pytest.raises(UnsupportedModel, match="The model is not valid: onnx"):
            ortscan.optimize(given)


def test_a_model_that_only_the_checker_refuses_still_loses_its_loops() -> None:
    proto = model()
    proto.graph.output[0].ClearField("type")
    result = ortscan.optimize(proto)
    assert isinstance(result, onnx.ModelProto)
    assert [node.op_type for node in result.graph.node] == ["Softmax"]
