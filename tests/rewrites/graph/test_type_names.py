"""Messages name element types as numpy does."""

import onnx_ir as ir
import pytest

from rewrites.graph.type_names import shape_name, type_name

TENSOR = ir.TensorType(ir.DataType.FLOAT)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (None, "of an unknown type"),
        (ir.DataType.FLOAT, "float32"),
        (11, "float64"),
        (ir.DataType.BFLOAT16, "bfloat16"),
        (TENSOR, "float32"),
        (ir.OptionalType(ir.SequenceType(TENSOR)), "optional(sequence(float32))"),
        (ir.SparseTensorType(ir.DataType.INT8), "sparse_tensor(int8)"),
    ],
)
def test_a_type_has_the_name_of_numpy(kind: ir.TypeProtocol | int | None, name: str) -> None:
    assert type_name(kind) == name


@pytest.mark.parametrize("shape", [ir.Shape([3, "T", None]), [3, "T", None]])
def test_an_unknown_size_is_a_question_mark(shape: ir.Shape | list[int | str | None]) -> None:
    assert shape_name(shape) == "[3, T, ?]"
    assert shape_name(None) == "of an unknown rank"
