"""Models are loaded and saved without loss: what is kept, what is refused, and what is never changed."""

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from google.protobuf.message import Message
from onnx import TensorProto, helper, numpy_helper

from ortscan.api import migrate, optimize, rewritten
from ortscan.modelio import (
    LoadedModel,
    declare_current_types,
    load,
    restore_interface,
    settle_new_initializers,
    to_caller_type,
    to_proto,
)
from rewrites.base.errors import InvariantBroken, MalformedLoop, ModelFileError, OptionError, UnsupportedModel
from tests.support.runtime import ort_run, ort_session
from tests.support.text import model_from_text

SCAN = """
<ir_version: 10, opset_import: ["": 18, "my": 1], producer_name: "someone", doc_string: "all of it",
 metadata_props: ["k": "v", "a": "b"]>
main (float[B, 3] s0, float[T, B, 3] x) => (float[B, 3] s1, float[T, "B", 3] ys) <float[3] w = {1, 2, 3}> {
    s1, y = Scan <num_scan_inputs = 1, body = b (float[B, 3] s, float[B, 3] xt) => (float[B, 3] sn, float[B, 3] yt) {
        a = Mul (xt, w)
        sn = Add (s, a)
        yt = Neg (sn)
    }> (s0, x)
    ys = my.Twice <k = 2.0> (y)
}
<domain: "my", opset_import: ["": 18]>
Twice <k> (a) => (b) { c = Constant <value_float: float = @k> () b = Mul (a, c) }
""".replace('"B"', "B")


def scan_model() -> onnx.ModelProto:
    model = model_from_text(SCAN)
    model.graph.node[0].doc_string = "the loop"
    model.graph.input[1].doc_string = "frames"
    model.graph.initializer[0].metadata_props.add(key="from", value="a checkpoint")
    model.graph.quantization_annotation.add(tensor_name="w").quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    return model


def small_model(text: str = "x = Identity (a)", header: str = "ir_version: 8", opset: int = 17) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<{header}, opset_import: ["": {opset}]> g (float[N] a) => (float[N] x) {{ {text} }}')


def plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without value_info, which is derived, and without empty texts."""
    result = copy.deepcopy(model)
    drop_empty(result)
    return result


def drop_empty(message: Message) -> None:
    for field, content in message.ListFields():
        if field.name == "value_info" or content == "":
            message.ClearField(field.name)
        elif field.type == field.TYPE_MESSAGE:
            for inner in [content] if isinstance(content, Message) else content:
                drop_empty(inner)


def as_kind(kind: str, model: onnx.ModelProto, folder: Path) -> str | bytes | onnx.ModelProto | ir.Model:
    if kind == "path":
        onnx.save(model, folder / "m.onnx")
        return str(folder / "m.onnx")
    return {"bytes": model.SerializeToString, "proto": lambda: model, "ir": lambda: ir.from_proto(model)}[kind]()


@pytest.mark.parametrize("kind", ["path", "bytes", "proto", "ir"])
def test_a_model_comes_back_as_it_was_and_as_what_it_was(kind: str, tmp_path: Path) -> None:
    loaded = load(as_kind(kind, scan_model(), tmp_path))
    result = to_caller_type(loaded)
    assert loaded.kind == kind
    assert isinstance(result, ir.Model if kind == "ir" else onnx.ModelProto)
    proto = ir.to_proto(result) if isinstance(result, ir.Model) else result
    if kind == "ir":
        proto.metadata_props.sort(key=lambda entry: entry.key == "a")
    assert plain(proto) == plain(scan_model())


def test_renaming_and_retyping_leaves_the_callers_proto_alone() -> None:
    mine = scan_model()
    before = mine.SerializeToString(deterministic=True)
    spoil(load(mine))
    assert mine.SerializeToString(deterministic=True) == before


def test_renaming_and_retyping_leaves_the_callers_ir_model_alone() -> None:
    proto = scan_model()
    mine = ir.from_proto(proto)
    before = ir.to_proto(mine)
    spoil(load(mine))
    assert ir.to_proto(mine) == before
    assert proto == scan_model()


def test_renaming_leaves_tensors_made_by_the_caller_alone() -> None:
    mine = ir.from_proto(scan_model())
    mine.graph.initializers["w"].const_value = ir.tensor(np.ones(3, np.float32), name="w")
    spoil(load(mine))
    assert mine.graph.initializers["w"].const_value.name == "w"  # type: ignore[union-attr]


def spoil(loaded: LoadedModel) -> None:
    graph = loaded.model.graph
    graph.initializers["w"].name = "renamed"
    for value in (*graph.inputs, *graph.node(0).outputs):
        value.dtype = ir.DataType.DOUBLE
        value.metadata_props["touched"] = "yes"
    body = graph.node(0).attributes["body"].as_graph()
    body.inputs[0].name = "other"
    constant = next(iter(loaded.model.functions.values()))[0]
    constant.attributes["value_float"] = ir.AttrFloat32("value_float", 9.0)
    loaded.model.metadata_props.clear()
    loaded.model.opset_imports[""] = 19


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"not a model at all, nothing like one", "not an ONNX model, or is truncated"),
        (scan_model().SerializeToString()[:-40], "truncated"),
        (scan_model().SerializeToString()[:8], "is truncated|has no graph"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (b"\x20\0\0\0ORTM" + bytes(40), "in the ORT format"),
        (numpy_helper.from_array(np.ones(4, np.float32), "t").SerializeToString(), "has no graph|not an ONNX model"),
        (onnx.ModelProto(ir_version=8, producer_name="p").SerializeToString(), "has no graph"),
    ],
)
def test_what_is_no_model_is_one_clear_error(content: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(content)
    with pytest.raises(ModelFileError, match=says) as error:
        load(file)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(ModelFileError, match=f"the given bytes .*({says})"):
        load(content)


def test_a_path_with_nothing_to_read_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelFileError, match=r"nothing\.onnx does not exist"):
        load(tmp_path / "nothing.onnx")
    with pytest.raises(ModelFileError, match="is a folder"):
        load(str(tmp_path))
    with pytest.raises(ModelFileError, match="is not a path"):
        load("")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("ortscan.modelio.reading._without_waiting", refuse)
    with pytest.raises(ModelFileError, match=r"m\.onnx cannot be read: Permission denied"):
        load("m.onnx")


@pytest.mark.parametrize("thing", [None, 3, onnx.GraphProto(), ["m.onnx"]])
def test_something_else_than_a_model_is_an_option_error(thing: object) -> None:
    with pytest.raises(OptionError, match=f"not {type(thing).__name__}"):
        load(thing)  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", [".textproto", ".json", ".onnxtxt"])
@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
def test_the_text_formats_of_onnx_can_be_read(suffix: str, tmp_path: Path) -> None:
    model = model_from_text(SCAN)
    onnx.save(model, tmp_path / f"m{suffix}")
    assert plain(to_caller_type(load(tmp_path / f"m{suffix}"))) == plain(model)


def sparse() -> onnx.SparseTensorProto:
    values = helper.make_tensor("thin", TensorProto.FLOAT, [1], [2.0])
    return onnx.SparseTensorProto(values=values, indices=helper.make_tensor("", TensorProto.INT64, [1], [1]), dims=[3])


def body_of(model: onnx.ModelProto) -> onnx.GraphProto:
    return next(a.g for a in model.graph.node[0].attribute if a.name == "body")


def drop_type(attribute: onnx.AttributeProto) -> None:
    attribute.ClearField("type")


REFUSED: dict[str, tuple[Callable[[onnx.ModelProto], object], str]] = {
    "sparse initializer": (lambda m: m.graph.sparse_initializer.append(sparse()), "sparse initializer 'thin'.* in the main graph"),
    "sparse initializer in a body": (lambda m: body_of(m).sparse_initializer.append(sparse()), "'thin'.* in body of Scan"),
    "sparse initializer in a function": (
        lambda m: (
            m.functions[0].node[1].attribute.append(helper.make_attribute("g", onnx.GraphProto(sparse_initializer=[sparse()])))
        ),
        "'thin'.* in g of Mul .* in function my::Twice",
    ),
    "sparse attribute": (
        lambda m: m.functions[0].node[1].attribute.append(helper.make_attribute("s", sparse())),
        "sparse attribute 's'",
    ),
    "training": (lambda m: m.training_info.add(), "training_info"),
    "external default": (
        lambda m: m.functions[0].attribute_proto.append(
            helper.make_attribute("d", TensorProto(data_type=1, data_location=TensorProto.EXTERNAL))
        ),
        "external data in default 'd' in function my::Twice",
    ),
    "no initializer name": (lambda m: m.graph.initializer[0].ClearField("name"), "initializer without a name"),
    "initializer twice": (lambda m: m.graph.initializer.append(m.graph.initializer[0]), "two initializers named 'w'"),
    "input twice": (lambda m: m.graph.input.append(m.graph.input[0]), "two inputs named 's0'"),
    "attribute twice": (lambda m: m.graph.node[0].attribute.append(m.graph.node[0].attribute[0]), "two attributes"),
    "attribute without type": (lambda m: drop_type(m.graph.node[1].attribute[0]), "attribute without a type, 'k' of Twice"),
    "bytes as text": (
        lambda m: m.graph.node[1].attribute.append(helper.make_attribute("names", [b"\xff"])),
        "strings that are not UTF-8 in attribute 'names'",
    ),
    "new format": (lambda m: setattr(m, "ir_version", onnx.IR_VERSION + 1), f"onnx .* supports at most {onnx.IR_VERSION}"),
    "ancient format": (lambda m: setattr(m, "ir_version", 2), "IR version 2"),
    "undefined input": (lambda m: m.graph.node[1].input.__setitem__(0, "nobody"), "Twice '' reads 'nobody'"),
    "undefined output": (lambda m: setattr(body_of(m).output[0], "name", "nobody"), "output 'nobody' of graph 'b'"),
    "redefined value": (lambda m: m.graph.node[1].output.__setitem__(0, "s1"), "'s1' is redeclared"),
    "cycle": (lambda m: m.graph.node[0].input.__setitem__(0, "ys"), "form a cycle"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_be_lost_or_damaged_is_refused_by_name(case: str) -> None:
    damage, says = REFUSED[case]
    model = scan_model()
    damage(model)
    with pytest.raises(UnsupportedModel, match=says):
        load(model)


def test_a_name_that_is_not_utf8_is_refused() -> None:
    content = small_model("b = Neg (a) x = Neg (b)").SerializeToString().replace(b"\x01b", b"\x01\xff")
    with pytest.raises(UnsupportedModel, match="not UTF-8"):
        load(content)


def test_a_model_without_operator_sets_is_cut_short() -> None:
    model = small_model()
    del model.opset_import[:]
    with pytest.raises(ModelFileError, match="imports no operator set"):
        load(model)


def test_map_outputs_survive() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 1]> g (float[N, 2] p) => (float[N, 2] z, float[N, 2] q)'
        "{ q = Neg (p) z = ai.onnx.ml.ZipMap <classlabels_int64s = [4, 7]> (p) }"
    )
    kind = onnx.TypeProto()
    kind.sequence_type.elem_type.map_type.key_type = TensorProto.INT64
    kind.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    model.graph.output[0].type.CopyFrom(kind)
    onnx.checker.check_model(model, full_check=True)
    before = copy.deepcopy(model)
    loaded = load(model)
    declare_current_types(loaded)
    assert plain(to_caller_type(loaded)) == plain(before)
    assert model == before


def test_shapes_types_and_words_are_restored_on_other_values() -> None:
    loaded = load(scan_model())
    graph = loaded.model.graph
    twice = graph.node(1)
    replacement = ir.node("Identity", [twice.outputs[0]], name="last")
    graph.append(replacement)
    graph.outputs[1] = replacement.outputs[0]
    twice.outputs[0].name, replacement.outputs[0].name = "inner", "ys"
    graph.inputs[0].shape = ir.Shape([7, 3])
    graph.inputs[1].doc_string = None
    loaded.model.doc_string = "spoilt"
    restore_interface(loaded)
    assert graph.outputs[1].shape == ir.Shape(["T", "B", 3])
    assert graph.outputs[1].dtype == ir.DataType.FLOAT
    assert graph.inputs[0].shape == ir.Shape(["B", 3])
    assert graph.inputs[1].doc_string == "frames"
    assert loaded.model.doc_string == "all of it"
    assert to_proto(loaded).graph.input == scan_model().graph.input
    assert to_proto(loaded).metadata_props == scan_model().metadata_props


def test_a_public_name_that_went_missing_is_a_broken_invariant() -> None:
    renamed, reordered = load(scan_model()), load(scan_model())
    renamed.model.graph.outputs[1].name = "zs"
    with pytest.raises(InvariantBroken, match=r"outputs of the model were \['s1', 'ys'\] and have become \['s1', 'zs'\]"):
        to_caller_type(renamed)
    outputs = list(reordered.model.graph.outputs)
    reordered.model.graph.outputs[:] = outputs[::-1]
    with pytest.raises(InvariantBroken, match="outputs of the model"):
        restore_interface(reordered)


def test_an_input_that_is_also_an_output_keeps_both_declarations() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[N] x) => (float[M] x, float[N] y) { y = Neg (x) }'
    )
    assert plain(to_caller_type(load(model))) == plain(model)


def test_shapes_fixed_on_purpose_become_the_interface() -> None:
    loaded = load(scan_model())
    loaded.model.graph.inputs[0].shape = ir.Shape([2, 3])
    declare_current_types(loaded)
    declared = to_caller_type(loaded).graph.input
    assert [d.dim_value for d in declared[0].type.tensor_type.shape.dim] == [2, 3]
    assert declared[1] == scan_model().graph.input[1]


def test_the_long_name_of_the_standard_domain_is_the_short_one() -> None:
    model = small_model()
    model.opset_import[0].domain = "ai.onnx"
    loaded = load(model)
    assert loaded.model.opset_imports == {"": 17}
    ort_run(to_caller_type(loaded), {"a": np.ones(2, np.float32)})


@pytest.mark.parametrize("kind", ["proto", "ir"])
def test_nodes_out_of_order_are_sorted(kind: str, tmp_path: Path) -> None:
    model = small_model("b = Neg (a) c = Abs (b) x = Exp (c)")
    model.graph.node.sort(key=lambda node: node.op_type)
    assert [n.op_type for n in model.graph.node] == ["Abs", "Exp", "Neg"]
    loaded = load(as_kind(kind, model, tmp_path))
    assert [n.op_type for n in loaded.model.graph] == ["Neg", "Abs", "Exp"]
    assert model.graph.node[0].op_type == "Abs"


def test_a_default_that_a_pass_took_away_returns() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> '
        "g (float[2] a, float[2] w) => (float[2] x) <float[2] w = {1, 2}> { x = Add (a, w) }"
    )
    loaded = load(model)
    graph = loaded.model.graph
    assert [v.name for v in graph.inputs] == ["a", "w"]
    graph.node(0).replace_input_with(1, graph.inputs[0])
    graph.initializers.pop("w")
    result = to_caller_type(loaded)
    assert result.graph.input == model.graph.input
    assert [t.name for t in result.graph.initializer] == ["w"]


IR3 = """
<ir_version: 3, opset_import: ["": OPSET]>
g (float[2, 2] w, float[3, 2] x, float[2, 2] v) => (float[3, 2] y) <float[2, 2] w = {1, 2, 3, 4}, float[2, 2] v = {1, 0, 0, 1}> {
    a = MatMul (x, w)
    y = MatMul (a, v)
}
"""


def ir3_model(opset: int = 9) -> onnx.ModelProto:
    return model_from_text(IR3.replace("OPSET", str(opset)))


def add_constant(loaded: LoadedModel, array: np.ndarray) -> None:
    """Add an initializer to the model, and reshape the output by it."""
    graph = loaded.model.graph
    shape = ir.Value(name="new", const_value=ir.tensor(array, name="new"), type=ir.TensorType(ir.DataType.INT64))
    graph.register_initializer(shape)
    old = graph.outputs[0]
    old.name = "flat"
    node = ir.node("Reshape", [old, shape])
    node.outputs[0].name = "y"
    graph.append(node)
    graph.outputs[0] = node.outputs[0]


def test_weights_of_ir_3_are_no_inputs_while_passes_work_and_are_listed_again_at_the_end() -> None:
    loaded = load(ir3_model())
    assert [v.name for v in loaded.model.graph.inputs] == ["x"]
    onnx.checker.check_model(ir.to_proto(loaded.model), full_check=True)
    assert plain(to_caller_type(loaded)) == plain(ir3_model())
    assert plain(to_proto(loaded)) == plain(ir3_model())


@pytest.mark.parametrize("opset", [7, 9])
def test_new_constants_of_ir_3_keep_the_interface_that_ort_sees(opset: int) -> None:
    loaded = load(ir3_model(opset))
    add_constant(loaded, np.array([3, 2]))
    settle_new_initializers(loaded)
    result = to_caller_type(loaded)
    onnx.checker.check_model(result, full_check=True)
    assert result.ir_version == 3
    assert [i.name for i in result.graph.input] == (["w", "x", "v", "new"] if opset < 9 else ["w", "x", "v"])
    session = ort_session(result)
    assert [i.name for i in session.get_inputs()] == ["x"]
    assert session.get_overridable_initializers() == []
    feed = {"x": np.arange(6, dtype=np.float32).reshape(3, 2)}
    np.testing.assert_array_equal(ort_run(result, feed)[0], ort_run(ir3_model(opset), feed)[0])


def test_a_weight_of_ir_3_that_nothing_needs_leaves_the_list() -> None:
    loaded = load(ir3_model())
    graph = loaded.model.graph
    graph.node(1).replace_input_with(1, graph.initializers["w"])
    graph.initializers.pop("v")
    result = to_caller_type(loaded)
    onnx.checker.check_model(result, full_check=True)
    assert [i.name for i in result.graph.input] == ["w", "x"]


def test_weights_in_a_body_of_ir_3_are_not_among_its_inputs_for_rules() -> None:
    model = onnx.parser.parse_model("""
    <ir_version: 3, opset_import: ["": 9]>
    g (float[1] s0, float[T, 1] x) => (float[1] s1, float[T, 1] y) {
        s1, y = Scan <num_scan_inputs = 1, body = b (float[1] s, float[1] xt, float[1] k) => (float[1] sn, float[1] yt)
            <float[1] k = {2}> { sn = Add (s, xt) yt = Mul (sn, k) }> (s0, x)
    }""")
    loaded = load(model)
    body = loaded.model.graph.node(0).attributes["body"].as_graph()
    assert [v.name for v in body.inputs] == ["s", "xt"]
    result = to_caller_type(loaded)
    assert plain(result) == plain(model)
    feed = {"s0": np.zeros(1, np.float32), "x": np.ones((3, 1), np.float32)}
    np.testing.assert_array_equal(ort_run(result, feed)[1].ravel(), [2, 4, 6])


LISTED_IN_BODIES = {
    "Scan of opset 8": """<ir_version: 4, opset_import: ["": 8]> g (float[1, 2] s, float[1, 3, 2] x) => (float[1, 2] z, float[1, 3, 2] y) {
        z, y = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] xt, float[2] w, float[2] v) => (float[2] h1, float[2] yt)
            <float[2] v = {1, 2}, float[2] w = {0.5, 3}> { a = Mul (h, w) h1 = Add (a, xt) yt = Mul (h1, v) }> ( , s, x) }""",
    "Scan, weights first": """<ir_version: 8, opset_import: ["": 17]> g (float[2] s, float[3, 2] x) => (float[2] z, float[3, 2] y) {
        z, y = Scan <num_scan_inputs = 1, body = b (float[2] w, float[2] h, float[2] v, float[2] xt) => (float[2] h1, float[2] yt)
            <float[2] w = {0.5, 3}, float[2] v = {1, 2}> { a = Mul (h, w) h1 = Add (a, xt) yt = Mul (h1, v) }> (s, x) }""",
    "Loop": """<ir_version: 7, opset_import: ["": 11]> g (float[2] s, int64 m) => (float[2] z, float[T, 2] y) {
        z, y = Loop <body = b (int64 i, bool c, float[2] h, float[2] w) => (bool d, float[2] h1, float[2] yt)
            <float[2] w = {0.5, 3}> { d = Identity (c) h1 = Mul (h, w) yt = Neg (h1) }> (m, , s) }""",
    "If": """<ir_version: 8, opset_import: ["": 18]> g (float[2] s, bool c) => (float[2] z) {
        z = If <then_branch = t (float[2] w) => (float[2] a) <float[2] w = {0.5, 3}> { a = Mul (s, w) },
                else_branch = e () => (float[2] o) { o = Neg (s) }> (c) }""",
    "Scan in an If in a Scan": """<ir_version: 8, opset_import: ["": 18]> g (float[2] s, float[3, 4, 2] x, bool c) => (float[2] z) {
        z = Scan <num_scan_inputs = 1, body = b (float[2] h, float[4, 2] xt, float[2] w) => (float[2] h1) <float[2] w = {0.5, 3}> {
            h1 = If <then_branch = t (float[2] v) => (float[2] p) <float[2] v = {1, 2}> {
                q = Scan <num_scan_inputs = 1, body = n (float[2] k, float[2] e, float[2] u) => (float[2] k1)
                    <float[2] u = {0.25, 4}> { f = Mul (k, u) k1 = Add (f, e) }> (h, xt)
                p = Mul (q, v)
            }, else_branch = o () => (float[2] p2) { p2 = Mul (h, w) }> (c)
        }> (s, x) }""",
}


@pytest.mark.parametrize("case", LISTED_IN_BODIES)
@pytest.mark.parametrize("opset", ["keep", 18])
def test_constants_that_a_body_lists_among_its_inputs_are_constants(case: str, opset: Any) -> None:
    model = onnx.parser.parse_model(LISTED_IN_BODIES[case])
    shapes = {
        info.name: (info.type.tensor_type.elem_type, [dim.dim_value for dim in info.type.tensor_type.shape.dim])
        for info in model.graph.input
    }
    feeds = {
        name: np.random.default_rng(0).integers(1, 5, shape).astype(helper.tensor_dtype_to_np_dtype(kind))
        for name, (kind, shape) in shapes.items()
    }
    result = optimize(model, opset=opset, verify="full")
    for before, after in zip(ort_run(model, feeds), ort_run(result, feeds), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-6)


def test_quantized_weights_that_a_body_lists_are_not_fused_with_its_products() -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21]>
        g (float[2] s, float[3, 2] x) => (float[2] z, float[3, 2] y) <uint8 zero = {130}> {
        z, y = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] xt, uint8[2, 2] w, float each) => (float[2] h1, float[2] yt)
            <uint8[2, 2] w = {164, 175, 125, 105}, float each = {0.02}> {
            d = DequantizeLinear (w, each, zero) p = MatMul (h, d) a = Add (p, xt) h1 = Tanh (a) yt = Identity (h1) }> (s, x) }""")
    feeds = {"s": np.array([0.3, -0.7], np.float32), "x": np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)}
    for result in (migrate(model, 22), migrate(model, 23)):
        for before, after in zip(ort_run(model, feeds), ort_run(result, feeds), strict=True):
            np.testing.assert_allclose(after, before, rtol=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "inputs"),
    [
        pytest.param("<float[2] w =", "<float[2] h = {1, 1}, float[2] w =", 2, id="a constant that the loop would overwrite"),
        pytest.param("float[2] w)", "float[2] w, float[2] u)", 4, id="an input without a constant"),
    ],
)
def test_a_body_with_another_number_of_inputs_is_refused_as_onnxruntime_does(old: str, new: str, inputs: int) -> None:
    model = onnx.parser.parse_model(LISTED_IN_BODIES["Loop"].replace(old, new))
    with pytest.raises(MalformedLoop, match=f"body has {inputs} inputs, but 3"):
        optimize(model)
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        ort_session(model)


def test_an_ir_version_raised_by_a_pass_stays() -> None:
    loaded = load(ir3_model())
    loaded.model.ir_version = 8
    result = to_caller_type(loaded)
    onnx.checker.check_model(result, full_check=True)
    assert result.ir_version == 8
    assert [i.name for i in ort_session(result).get_inputs()] == ["x"]


def test_a_path_may_be_any_path_like(tmp_path: Path) -> None:
    class Somewhere(os.PathLike[str]):
        def __fspath__(self) -> str:
            return str(tmp_path / "m.onnx")

    onnx.save(scan_model(), tmp_path / "m.onnx")
    assert load(Somewhere()).source == tmp_path / "m.onnx"


def test_a_model_of_ir_version_3_that_was_migrated_lists_what_rules_add():
    model = onnx.parser.parse_model("""<ir_version: 3, opset_import: ["" : 8]>
        g (float[2] x, float[2] s, int64 m, bool go) => (float[2] z) <bool go = {1}> {
            z = Loop <body = b (int64 i, bool c, float[2] h) => (bool d, float[2] y) { d = Identity (c) y = Tanh (x) }> (m, go, s)
        }""")
    loaded, report = rewritten(model, opset=9, debug=True)
    result = to_caller_type(loaded)
    assert report.patches
    assert result.ir_version == 3
    assert {tensor.name for tensor in result.graph.initializer} <= {info.name for info in result.graph.input}
    onnx.checker.check_model(result, full_check=True)
