"""External data and files: data is read only if needed, nothing is lost, references stay valid, and no file is half-written."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, numpy_helper

from ortscan.modelio import LoadedModel, data_files, load, reading, save, to_caller_type, with_data
from rewrites.base.errors import ModelFileError, UnsupportedModel
from tests.support.runtime import ort_run

SIDE = 32
X = np.random.default_rng(0).normal(size=(4, SIDE)).astype(np.float32)
MODEL = f"""
<ir_version: 10, opset_import: ["": 18]>
g (float[4, {SIDE}] x) => (float[4, {SIDE}] y) {{
    a = MatMul (x, w)
    k = Constant <value = float[1] {{0}}> ()
    b = Add (a, k)
    c = Add (b, tiny)
    h, y = Scan <num_scan_inputs = 1, body = body (float[{SIDE}] s, float[{SIDE}] xt) => (float[{SIDE}] sn, float[{SIDE}] yt) {{
        sn = Add (s, xt)
        yt = MatMul (sn, inner)
    }}> (zero, c)
}}
"""


def weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    shapes = {"w": (SIDE, SIDE), "inner": (SIDE, SIDE), "k": (4 * SIDE * SIDE,), "tiny": (SIDE,), "zero": (SIDE,)}
    return {name: (random.normal(size=shape) / SIDE).astype(np.float32) for name, shape in shapes.items()}


def whole_model() -> onnx.ModelProto:
    """Return a model with weights in the main graph, in a Constant and in a body. All but ``tiny`` and ``zero`` exceed 1 KiB."""
    model = onnx.parser.parse_model(MODEL)
    arrays = weights()
    graph = model.graph
    body = next(a.g for a in graph.node[-1].attribute if a.name == "body")
    body.initializer.append(numpy_helper.from_array(arrays["inner"], "inner"))
    graph.node[1].attribute[0].t.CopyFrom(numpy_helper.from_array(arrays["k"].reshape(4, SIDE, SIDE)[:, :, 0] * 2, "k"))
    graph.initializer.extend(numpy_helper.from_array(arrays[name], name) for name in ("w", "tiny", "zero"))
    graph.node[1].attribute[0].t.CopyFrom(numpy_helper.from_array(np.resize(arrays["k"], (4, SIDE)), "k"))
    return model


def tensors_of(model: onnx.ModelProto) -> dict[str, TensorProto]:
    body = next(a.g for a in model.graph.node[-1].attribute if a.name == "body")
    constant = [a.t for node in model.graph.node for a in node.attribute if a.name == "value"]
    return {t.name or "k": t for t in (*model.graph.initializer, *body.initializer, *constant)}


def put_outside(model: onnx.ModelProto, folder: Path, data: str = "m.onnx.data", names: Iterable[str] = ("w", "inner")) -> Path:
    """Save the model as ``m.onnx`` with some weights in a separate file."""
    tensors = tensors_of(model)
    with (folder / data).open("ab") as file:
        for name in names:
            tensor = tensors[name]
            content = numpy_helper.to_array(tensor).tobytes()
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in {"location": data, "offset": file.tell(), "length": len(content)}.items():
                tensor.external_data.add(key=key, value=str(value))
            file.write(content)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return folder / "m.onnx"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return put_outside(whole_model(), folder)


@pytest.fixture
def expected() -> np.ndarray:
    return ort_run(whole_model(), {"x": X})[0]


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def locations(path: Path) -> set[str]:
    tensors = tensors_of(onnx.load(path, load_external_data=False)).values()
    return {entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}


def test_a_model_given_by_path_comes_back_with_its_data(source: Path, expected: np.ndarray) -> None:
    result = to_caller_type(load(source))
    np.testing.assert_array_equal(ort_run(result, {"x": X})[0], expected)
    assert {name: t.data_location for name, t in tensors_of(result).items() if t.data_location} == {}
    assert to_caller_type(load(source)) == result


def test_references_can_be_had_instead(source: Path) -> None:
    result = to_caller_type(load(source), references=True)
    assert tensors_of(result)["w"] == tensors_of(onnx.load(source, load_external_data=False))["w"]


def test_references_in_a_proto_pass_through_unread(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mine = onnx.load(source, load_external_data=False)
    for kind in (mine, mine.SerializeToString()):
        loaded = load(kind)
        assert tensors_of(to_caller_type(loaded)) == tensors_of(mine)
        weight = loaded.model.graph.initializers["w"].const_value
        assert isinstance(weight, ir.ExternalTensor)
        assert not weight.valid()
        with pytest.raises(UnsupportedModel, match=r"data of 'w' is needed but it is in .*m\.onnx\.data', which does not exist"):
            weight.numpy()
        with pytest.raises(ModelFileError, match=r"external data of 'w' cannot be read"):
            save(loaded, tmp_path / "out.onnx")
        assert listing(tmp_path) == ["source"]


def test_references_in_a_proto_are_found_beside_its_source_or_in_the_working_folder(
    source: Path, expected: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = onnx.load(source, load_external_data=False)
    save(load(mine, source=source), tmp_path / "one.onnx")
    monkeypatch.chdir(source.parent)
    save(load(mine), tmp_path / "two.onnx")
    for name in ("one.onnx", "two.onnx"):
        np.testing.assert_array_equal(ort_run(str(tmp_path / name), {"x": X})[0], expected)


@pytest.mark.parametrize("location", ["../w", "a/../../w", "/etc/passwd"])
def test_references_in_a_proto_that_lead_out_of_every_folder_are_refused(location: str) -> None:
    mine = whole_model()
    weight = next(tensor for tensor in mine.graph.initializer if tensor.name == "w")
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=location)
    for kind in (mine, mine.SerializeToString()):
        with pytest.raises(ModelFileError, match=f"the external data of 'w' .*{location}.*, which"):
            load(kind)


def test_missing_references_in_an_ir_model_come_back_as_they_were(tmp_path: Path) -> None:
    model = ir.from_proto(whole_model())
    lost = ir.ExternalTensor(
        "lost.bin", 0, SIDE * SIDE * 4, ir.DataType.FLOAT, shape=ir.Shape([SIDE, SIDE]), name="w", base_dir=tmp_path
    )
    model.graph.initializers["w"].const_value = lost
    result = to_caller_type(load(model))
    assert isinstance(result, ir.Model)
    tensor = result.graph.initializers["w"].const_value
    assert isinstance(tensor, ir.ExternalTensor)
    assert (tensor.path, tensor.valid()) == (lost.path, True)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda folder, _: (folder / "m.onnx.data").unlink(), r"'w' is in .*m\.onnx\.data', which does not exist"),
        (
            lambda folder, _: os.truncate(folder / "m.onnx.data", 100),
            r"'w' ends at byte 4096 of .*m\.onnx\.data', which has 100 bytes",
        ),
        (lambda _, tensor: setattr(tensor.external_data[0], "value", "../m.onnx"), "which leaves the model's folder"),
        (lambda _, tensor: setattr(tensor.external_data[0], "value", "/etc/hosts"), "which is not a relative path"),
        (lambda _, tensor: setattr(tensor.external_data[0], "value", "."), "cannot be read"),
        (lambda _, tensor: setattr(tensor.external_data[1], "value", "-1"), "has the offset '-1', not a number of bytes"),
        (lambda _, tensor: setattr(tensor.external_data[0], "key", "place"), "external data of 'w' has no location"),
        (lambda _, tensor: setattr(tensor.external_data[2], "value", "4"), "has 4 bytes, but its shape needs 4096"),
        (lambda _, tensor: setattr(tensor, "data_type", TensorProto.STRING), "is text, which cannot be external"),
    ],
)
def test_external_data_that_is_not_there_is_one_clear_error(source: Path, spoil, says: str) -> None:
    model = onnx.load(source, load_external_data=False)
    spoil(source.parent, tensors_of(model)["w"])
    source.write_bytes(model.SerializeToString())
    with pytest.raises((ModelFileError, UnsupportedModel), match=says) as error:
        load(source)
    assert str(source) in str(error.value)


def test_data_behind_links_is_read_where_ort_reads_it(source: Path, expected: np.ndarray, tmp_path: Path) -> None:
    """As in a download cache, the model and its data are links into a folder of blobs."""
    source = put_outside(whole_model(), source.parent, names=["w"])
    view = tmp_path / "view"
    view.mkdir()
    (view / "m.onnx").symlink_to("../source/m.onnx")
    (view / "m.onnx.data").symlink_to("../source/m.onnx.data")
    np.testing.assert_array_equal(ort_run(str(view / "m.onnx"), {"x": X})[0], expected)
    np.testing.assert_array_equal(ort_run(to_caller_type(load(view / "m.onnx")), {"x": X})[0], expected)


TYPES = ["float16", "float64", "int8", "uint64", "bool", "complex64", "bfloat16", "float8_e4m3fn", "int4", "uint4", "int2"]


@pytest.mark.parametrize("dtype", TYPES)
def test_tensors_of_every_width_are_read_from_files(dtype: str, tmp_path: Path) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    array = np.arange(7 * 300).reshape(7, 300).__mod__(2).astype(kind)
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 18]> g () => (float[1] y) { y = Constant <value_floats = [1.0]> () }'
    )
    tensor = ir.to_proto(ir.tensor(array, name="w"))
    (tmp_path / "w.bin").write_bytes(bytes(3) + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    tensor.external_data.add(key="offset", value="3")
    model.graph.initializer.append(tensor)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    loaded = load(tmp_path / "m.onnx")
    found = loaded.model.graph.initializers["w"].const_value
    assert found is not None
    np.testing.assert_array_equal(found.numpy(), array)
    np.testing.assert_array_equal(np.asarray(found), array)
    for external in (True, False):
        save(loaded, tmp_path / "out.onnx", as_external_data=external)
        again = load(tmp_path / "out.onnx").model.graph.initializers["w"].const_value
        assert again is not None
        np.testing.assert_array_equal(again.numpy(), array)


def test_saving_moves_external_data_along(source: Path, expected: np.ndarray, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    save(load(source), out / "n.onnx")
    assert listing(out) == ["n.onnx", "n.onnx.data"]
    assert locations(out / "n.onnx") == {"n.onnx.data"}
    tensors = tensors_of(onnx.load(out / "n.onnx", load_external_data=False))
    assert {name for name, t in tensors.items() if t.data_location == TensorProto.EXTERNAL} == {"w", "inner"}
    np.testing.assert_array_equal(ort_run(str(out / "n.onnx"), {"x": X})[0], expected)
    onnx.checker.check_model(str(out / "n.onnx"), full_check=True)


def test_tensors_in_constants_that_were_external_stay_external(tmp_path: Path) -> None:
    model = whole_model()
    constant = tensors_of(model)["k"]
    constant.CopyFrom(numpy_helper.from_array(np.ones((300, 4, SIDE), np.float32), "k"))
    source = put_outside(model, tmp_path, names=["k"])
    (tmp_path / "out").mkdir()
    save(load(source), tmp_path / "out" / "n.onnx")
    result = onnx.load(tmp_path / "out" / "n.onnx", load_external_data=False)
    assert tensors_of(result)["k"].data_location == TensorProto.EXTERNAL
    assert locations(tmp_path / "out" / "n.onnx") == {"n.onnx.data"}
    assert numpy_helper.to_array(tensors_of(onnx.load(tmp_path / "out" / "n.onnx"))["k"]).sum() == 300 * 4 * SIDE


def test_a_whole_model_is_one_file(expected: np.ndarray, tmp_path: Path) -> None:
    save(load(whole_model()), tmp_path / "n.onnx")
    assert listing(tmp_path) == ["n.onnx"]
    np.testing.assert_array_equal(ort_run(str(tmp_path / "n.onnx"), {"x": X})[0], expected)


def test_external_data_can_be_asked_for_and_refused(source: Path, expected: np.ndarray, tmp_path: Path) -> None:
    save(load(whole_model()), tmp_path / "a.onnx", as_external_data=True)
    save(load(source), tmp_path / "b.onnx", as_external_data=False)
    assert listing(tmp_path) == ["a.onnx", "a.onnx.data", "b.onnx", "source"]
    for name in ("a.onnx", "b.onnx"):
        np.testing.assert_array_equal(ort_run(str(tmp_path / name), {"x": X})[0], expected)


def test_what_a_protobuf_cannot_hold_goes_outside_by_itself(
    expected: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load(whole_model())
    monkeypatch.setattr(reading, "PROTOBUF_LIMIT", 9000)
    with pytest.raises(ModelFileError, match=r"a\.onnx cannot be written: it would exceed 2 GB without external data"):
        save(loaded, tmp_path / "a.onnx", as_external_data=False)
    assert listing(tmp_path) == []
    save(loaded, tmp_path / "a.onnx")
    assert listing(tmp_path) == ["a.onnx", "a.onnx.data"]
    np.testing.assert_array_equal(ort_run(str(tmp_path / "a.onnx"), {"x": X})[0], expected)
    monkeypatch.setattr(reading, "PROTOBUF_LIMIT", 900)
    with pytest.raises(ModelFileError, match="it would exceed 2 GB without its initializers"):
        save(loaded, tmp_path / "b.onnx")
    assert listing(tmp_path) == ["a.onnx", "a.onnx.data"]


def test_weights_that_share_data_share_it_again_and_large_ones_are_aligned(tmp_path: Path) -> None:
    rows = 8192
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 18]>
    g (float[{rows}, 33] x) => (float[{rows}, 33] y) {{ a = Add (x, w) b = Add (a, v) y = Mul (b, u) }}""")
    for name in ("u", "w", "v"):
        tensor = model.graph.initializer.add(
            name=name, data_type=TensorProto.FLOAT, dims=[rows, 33], data_location=TensorProto.EXTERNAL
        )
        tensor.external_data.add(key="location", value="tied.bin")
        tensor.external_data.add(key="offset", value="64" if name == "u" else "0")
    np.arange(rows * 33 + 16, dtype=np.float32).tofile(tmp_path / "tied.bin")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    save(load(tmp_path / "m.onnx"), tmp_path / "n.onnx")
    placed = [
        {e.key: e.value for e in t.external_data}
        for t in onnx.load(tmp_path / "n.onnx", load_external_data=False).graph.initializer
    ]
    assert placed[1] == placed[2] != placed[0]
    assert all(int(place["offset"]) % 65536 == 0 for place in placed)
    x = {"x": np.ones((rows, 33), np.float32)}
    np.testing.assert_array_equal(ort_run(str(tmp_path / "n.onnx"), x)[0], ort_run(str(tmp_path / "m.onnx"), x)[0])


def move_weights(loaded: LoadedModel) -> None:
    """Insert another large weight first, so that all others move in the data file."""
    initializers = loaded.model.graph.initializers
    others = [initializers.pop(name) for name in list(initializers)]
    extra = ir.tensor(np.zeros((2 * SIDE, SIDE), np.float32), name="extra")
    for value in (ir.Value(name="extra", const_value=extra, type=ir.TensorType(ir.DataType.FLOAT)), *others):
        loaded.model.graph.register_initializer(value)


def test_a_model_can_be_saved_over_itself_and_used_on(source: Path, expected: np.ndarray) -> None:
    loaded = load(source)
    move_weights(loaded)
    save(loaded, source)
    assert listing(source.parent) == ["m.onnx", "m.onnx.data"]
    np.testing.assert_array_equal(ort_run(str(source), {"x": X})[0], expected)
    save(loaded, source.parent / "again.onnx")
    np.testing.assert_array_equal(ort_run(str(source.parent / "again.onnx"), {"x": X})[0], expected)
    np.testing.assert_array_equal(ort_run(to_caller_type(loaded), {"x": X})[0], expected)


def test_a_callers_ir_model_whose_data_was_replaced_says_so_instead_of_reading_something_else(source: Path) -> None:
    mine = ir.load(source)
    loaded = load(mine)
    move_weights(loaded)
    save(loaded, source)
    tensor = mine.graph.initializers["w"].const_value
    assert isinstance(tensor, ir.ExternalTensor)
    assert not tensor.valid()
    result = to_caller_type(loaded)
    assert isinstance(result, ir.Model)
    for model in (result, load(result).model):
        kept = model.graph.initializers["w"].const_value
        assert kept is not None
        np.testing.assert_array_equal(kept.numpy(), weights()["w"])
    with pytest.raises(UnsupportedModel, match=r"data of 'w' is needed but it was in .*, which has been overwritten since"):
        load(mine).model.graph.initializers["w"].const_value.numpy()  # type: ignore[union-attr]


def test_the_data_of_another_model_is_not_overwritten(tmp_path: Path, expected: np.ndarray) -> None:
    source = put_outside(whole_model(), tmp_path, data="out.onnx.data")
    save(load(source), tmp_path / "out.onnx")
    assert listing(tmp_path) == ["m.onnx", "out.onnx", "out.onnx.1.data", "out.onnx.data"]
    for name in ("m.onnx", "out.onnx"):
        np.testing.assert_array_equal(ort_run(str(tmp_path / name), {"x": X})[0], expected)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("failing", [1, 2, 3, 4])
@pytest.mark.parametrize("links", [True, False])
def test_a_replacement_that_fails_half_way_leaves_everything_as_it_was_or_is_done(
    source: Path, failing: int, links: bool, expected: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(source.parent)
    real, done = os.replace, []

    def replace(one: Path, other: Path) -> None:
        if other.name.startswith("m.onnx"):
            done.append(other)
            if len(done) == failing:
                raise OSError(28, "No space left on device")
        real(one, other)

    def no_link(*_: object, **__: object) -> None:
        raise OSError(1, "Operation not permitted")

    loaded = load(source)
    loaded.model.graph.node(0).name = "changed"
    monkeypatch.setattr(os, "replace", replace)
    if not links:
        monkeypatch.setattr(os, "link", no_link)
    if failing <= 2:
        with pytest.raises(ModelFileError, match=r"m\.onnx cannot be written: No space left on device"):
            save(loaded, source)
        assert contents(source.parent) == before
        return
    save(loaded, source)
    monkeypatch.undo()
    assert listing(source.parent) == ["m.onnx", "m.onnx.1.data"]
    np.testing.assert_array_equal(ort_run(str(source), {"x": X})[0], expected)
    save(loaded, source)
    assert listing(source.parent) == ["m.onnx", "m.onnx.data"]


def test_an_interrupted_write_leaves_nothing_behind(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(source.parent)
    loaded = load(source)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(with_data, "write_model", interrupt)
    for target in (source, source.parent / "new.onnx"):
        with pytest.raises(KeyboardInterrupt):
            save(loaded, target)
    assert contents(source.parent) == before
    weight = loaded.model.graph.initializers["w"].const_value
    assert weight is not None
    np.testing.assert_array_equal(weight.numpy(), weights()["w"])


def test_an_output_that_cannot_be_is_one_clear_error(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load(source)
    with pytest.raises(ModelFileError, match=r"the folder .*/no does not exist"):
        save(loaded, tmp_path / "no" / "n.onnx")
    with pytest.raises(ModelFileError, match="is a folder"):
        save(loaded, tmp_path)
    with pytest.raises(ModelFileError, match="is not a regular file"):
        save(loaded, "/dev/null")
    with pytest.raises(ModelFileError, match="cannot be written"):
        save(loaded, "/proc/n.onnx")
    (tmp_path / "n.onnx.data").mkdir()
    with pytest.raises(ModelFileError, match=r"n\.onnx\.data, where its external data goes, is a folder"):
        save(loaded, tmp_path / "n.onnx")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ModelFileError, match="permission denied"):
        save(loaded, source)
    assert sorted(listing(tmp_path)) == ["n.onnx.data", "source"]


def test_a_replaced_file_keeps_its_permissions_and_a_new_one_has_the_usual_ones(source: Path, tmp_path: Path) -> None:
    source.chmod(0o640)
    old = os.umask(0o027)
    try:
        save(load(source), source)
        save(load(source), tmp_path / "n.onnx")
    finally:
        os.umask(old)
    assert stat.S_IMODE(source.stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "n.onnx").stat().st_mode) == 0o640
    source.chmod(0o604)
    save(load(whole_model()), source)
    assert stat.S_IMODE(source.stat().st_mode) == 0o604


def test_a_link_is_written_through(source: Path, expected: np.ndarray, tmp_path: Path) -> None:
    near, far = source.parent / "near.onnx", tmp_path / "far.onnx"
    near.symlink_to("m.onnx")
    far.symlink_to(source)
    save(load(source), near)
    assert near.is_symlink()
    assert listing(source.parent) == ["m.onnx", "m.onnx.data", "near.onnx"]
    for path in (near, source):
        np.testing.assert_array_equal(ort_run(str(path), {"x": X})[0], expected)
    with pytest.raises(ModelFileError, match=r"far\.onnx is a symbolic link into another folder"):
        save(load(source), far)
    save(load(whole_model()), far)
    assert far.is_symlink()
    np.testing.assert_array_equal(ort_run(str(source), {"x": X})[0], expected)


@pytest.mark.parametrize("suffix", [".textproto", ".json"])
def test_the_suffix_tells_the_format_that_is_written(suffix: str, expected: np.ndarray, tmp_path: Path) -> None:
    save(load(whole_model()), tmp_path / f"n{suffix}")
    np.testing.assert_array_equal(ort_run(onnx.load(tmp_path / f"n{suffix}"), {"x": X})[0], expected)


def test_a_format_that_would_lose_something_is_refused(tmp_path: Path) -> None:
    model = whole_model()
    model.graph.node[0].doc_string = "printed nowhere"
    with pytest.raises(ModelFileError, match="the onnxtxt format cannot represent this model"):
        save(load(model), tmp_path / "n.onnxtxt")
    assert listing(tmp_path) == []


def test_a_model_with_very_many_data_files_is_read_file_by_file(
    tmp_path: Path, expected: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "_HELD", 1)
    put_outside(whole_model(), tmp_path, data="one.bin", names=["w"])
    model = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    source = put_outside(model, tmp_path, data="two.bin", names=["inner"])
    loaded = load(source)
    np.testing.assert_array_equal(ort_run(to_caller_type(loaded), {"x": X})[0], expected)
    save(loaded, tmp_path / "n.onnx")
    np.testing.assert_array_equal(ort_run(str(tmp_path / "n.onnx"), {"x": X})[0], expected)
    (tmp_path / "two.bin").write_bytes(bytes(SIDE * SIDE * 4 + 1))
    with pytest.raises(ModelFileError, match=r"two\.bin' was changed after the model was loaded"):
        to_caller_type(loaded)


BIG = """
import resource, sys
from ortscan.modelio import load, save
import onnx_ir as ir
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
source, target = sys.argv[1:]
start = peak()
loaded = load(source)
loaded.model.graph.node(0).name = "rewritten"
save(loaded, target)
print(peak() - start)
"""


def test_a_large_model_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    count, size = 4, 64 << 20
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 18]> g (float[{size // 4}] x) => (float[{size // 4}] y) {{ a = Neg (x) y = Sum (a, '
        + ", ".join(f"w{i}" for i in range(count))
        + ") }"
    )
    for i in range(count):
        tensor = model.graph.initializer.add(
            name=f"w{i}", data_type=TensorProto.FLOAT, dims=[size // 4], data_location=TensorProto.EXTERNAL
        )
        for key, value in {"location": "big.bin", "offset": i * size, "length": size}.items():
            tensor.external_data.add(key=key, value=str(value))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with (tmp_path / "big.bin").open("wb") as file:
        file.truncate(count * size)
    run = [sys.executable, "-c", BIG, str(tmp_path / "m.onnx"), str(tmp_path / "n.onnx")]
    grown = int(subprocess.run(run, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[3]).stdout)
    (tmp_path / "big.bin").unlink()
    assert (tmp_path / "n.onnx.data").stat().st_size == count * size
    assert grown < size
