"""The options of ``optimize`` about the model: its target, its opset, and facts about its inputs.

See ``options``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from ortscan import option_texts as texts
from ortscan.option_types import Option

__all__ = ["ModelOptions", "TargetName"]

TargetName = Literal["onnx", "cpu", "cuda", "tensorrt", "directml", "webgpu", "coreml", "nnapi", "qnn", "openvino"]
_Shapes = Mapping[str, Sequence[int | None]] | None


class ModelOptions(TypedDict, total=False):
    """The options about the model."""

    target: Annotated[
        TargetName,
        Option(
            "cpu",
            'where the model will run: `"onnx"` (any runtime: standard operators only), `"cpu"`, `"cuda"`, `"tensorrt"`, '
            '`"directml"`, `"webgpu"`, `"coreml"`, `"nnapi"`, `"qnn"`, `"openvino"`',
            "--target NAME",
            "where the model will run: onnx (anywhere: standard operators only), cpu (default), cuda, tensorrt, directml, "
            "webgpu, coreml, nnapi, qnn or openvino",
            session=str,
            only_for_loops=True,
        ),
    ]
    opset: Annotated[
        int | Literal["auto", "keep"],
        Option(
            "auto",
            '`"auto"`: before anything else, a model older than opset 18 is migrated to opset 18, if it has a loop or a recurrent '
            "node that is too old to run. If the migration could change results, the model stays in its opset. "
            '`"keep"`: the model stays in its opset. A number: the model is migrated to this opset; MigrationError is raised if '
            "this is not possible",
            "--opset auto|keep|N",
            "auto (default): a model with a loop that is older than opset 18 is first migrated to 18 if that is sound; "
            "keep: stay in the opset of the model; N: migrate the model to opset N",
            session=texts.read_opset,
        ),
    ]
    shapes: Annotated[
        _Shapes,
        Option(
            None,
            "typical shapes of inputs, for cost decisions only; `None` (`?` in `--shape x:64,?,128`) for an unknown size",
            "--shape --input-shapes X:64,1,128",
            "a typical shape of input X, never built into the model; ? is an unknown size; may be repeated",
            example='shapes={"x": [64, 1, 128]}',
            read=texts.read_shape,
            session=texts.read_shapes,
            only_for_loops=True,
        ),
    ]
    dims: Annotated[
        Mapping[str, int] | None,
        Option(
            None,
            "typical sizes by the names of dimensions (`--dim T=64`), or by their positions (`x[0]`) if they have no name",
            "--dim T=64",
            "a typical size of the dimension named T, never built into the model; may be repeated",
            example='dims={"T": 64}',
            read=texts.read_dim,
            session=texts.read_dims,
            only_for_loops=True,
        ),
    ]
    fix_shapes: Annotated[
        _Shapes,
        Option(
            None,
            "shapes to build into the model. The model then accepts no other shapes, and trip counts that depend on these shapes "
            "become constants. `None` leaves a size free. If a dimension has a name, it gets its size wherever the name occurs",
            "--fix-shape X:64,1,128",
            "a shape of input X to build into the model, which then accepts no other; ? is a size that stays free; may be repeated",
            example='fix_shapes={"x": [64, 1, 128]}',
            read=texts.read_shape,
            session=texts.read_shapes,
        ),
    ]
    fix_dims: Annotated[
        Mapping[str, int] | None,
        Option(
            None,
            "sizes to build in, by the names of dimensions (`--fix-dim T=64`)",
            "--fix-dim T=64",
            "the size of the dimension named T to build into the model; may be repeated",
            example='fix_dims={"T": 64}',
            read=texts.read_dim,
            session=texts.read_dims,
        ),
    ]
    fix_inputs: Annotated[
        Mapping[str, Any] | None,
        Option(
            None,
            "values of inputs that are always the same: these inputs become constants, and the result does not have them. If an "
            "input chooses between parts of a model (a sampling rate, a mode), only the chosen part is left",
            "--fix-input X=VALUE",
            "the constant value of input X, which the result does not have any more: a number, true, false, a text, or numbers in "
            "brackets such as [1,2]; may be repeated",
            example='fix_inputs={"sr": 16000}',
            read=texts.read_input_value,
            session=texts.read_values,
        ),
    ]
    freeze: Annotated[
        bool | Iterable[str],
        Option(
            False,
            "`True`, or a list of names: initializers that are listed as inputs become constants. Otherwise each run may replace "
            "them, so no rule relies on their values; `explain` reports `DEFAULT-INPUT` if that keeps a loop",
            "--freeze all|A,B",
            "turn initializers that are listed as inputs into constants: all of them, or those named",
            read=texts.read_freeze,
            session=texts.read_freeze_entry,
        ),
    ]
