"""Read typical sizes of inputs, and build fixed sizes of inputs into a model.

If a size is built in, the trip counts and shapes that depend on it become constants.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from ortscan.verification.inputs.shapes import given_shapes
from rewrites.analysis.shapes.branches_of_ifs import hide_sizes_from_branches
from rewrites.analysis.shapes.inference import infer_model
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, quoted, shown
from rewrites.graph.context import Context
from rewrites.graph.dims import forgotten, refined, without_names
from rewrites.graph.type_names import shape_name
from rewrites.graph.values import rank_of

__all__ = ["FixedShapes", "fixed_sizes", "merged_shapes", "size_hints"]


def fixed_sizes(fix_shapes: Any) -> dict[str, Sequence[int | None]]:
    """Check the option ``fix_shapes``, and return it as a dict such as ``{"x": [None, 64]}``.

    The keys are names of inputs. None leaves a dimension free. Raise OptionError if the option has another form.
    """
    shapes = given_shapes(fix_shapes, "fix_shapes")
    for name, dims in shapes.items():
        for axis, size in enumerate(dims):
            if size is not None and (isinstance(size, bool) or not 0 <= size < 2**63):
                raise OptionError(
                    f"fix_shapes: dimension {axis} of '{name}' must be a number from 0 to 2^63 - 1, not {shown(size)}."
                )
    return shapes


def merged_shapes(
    typical: Mapping[str, Sequence[int | None]], fixed: Mapping[str, Sequence[int | None]]
) -> dict[str, Sequence[int | None]] | None:
    """Return the shapes at which models are compared: the typical shapes, overridden by ``fixed`` sizes.

    Return None if there are no shapes.
    """
    merged = {**typical, **fixed}
    for name in typical.keys() & fixed.keys():
        if len(typical[name]) == len(fixed[name]):
            pairs = zip(typical[name], fixed[name], strict=True)
            merged[name] = [size if fixed_size is None else fixed_size for size, fixed_size in pairs]
    return merged or None


def size_hints(model: ir.Model, shapes: Mapping[str, Sequence[int | None]]) -> dict[str, int]:
    """Return the typical sizes of symbolic dimensions, computed from ``shapes``.

    ``shapes`` has the typical shapes of some inputs. For an input x [T, 40] with the typical shape [100, 40], the result is
    ``{"T": 100}``. Raise OptionError if ``shapes`` has the name of an unknown input, or a shape that its input cannot have.
    """
    sizes: dict[str, int] = {}
    inputs = {value.name: value for value in model.graph.inputs}
    for name, dims in shapes.items():
        value = inputs.get(name)
        if value is None:
            known = ", ".join(f"'{known}'" for known in inputs)
            raise OptionError(f"shapes: the model has no input '{name}'; it has {known}{did_you_mean(name, filter(None, inputs))}.")
        if value.shape is None:
            continue
        if len(dims) != len(value.shape):
            raise OptionError(f"shapes: input '{name}' has {len(value.shape)} dimensions, not {len(dims)}.")
        for axis, (declared, typical) in enumerate(zip(value.shape.dims, dims, strict=True)):
            if typical is None:
                continue
            if not isinstance(typical, int) or typical < 0:
                raise OptionError(f"shapes: dimension {axis} of '{name}' must be a number of 0 or more, not {shown(typical)}.")
            if isinstance(declared, int) and declared != typical:
                raise OptionError(f"shapes: dimension {axis} of '{name}' is {declared}, not {typical}.")
            if not isinstance(declared, int) and declared.value:
                sizes[declared.value] = typical
    return sizes


class FixedShapes:
    """Sizes to build into a model.

    The constructor declares the sizes at the inputs of the model. ``put_into_outputs`` declares sizes at the outputs.
    """

    def __init__(self, model: ir.Model, shapes: Mapping[str, Sequence[int | None]]) -> None:
        """Declare ``shapes`` as the shapes of the model's inputs.

        If a dimension with a name gets a size, every dimension of an input with the same name gets this size too.

        Raises:
            OptionError: ``shapes`` has an input that does not exist or is no tensor, a rank or a size that contradicts the model,
                or two sizes for dimensions with the same name.
        """
        self._sizes: dict[str, int] = {}
        self._declared = [value.shape for value in model.graph.outputs]
        inputs = {value.name or "": value for value in model.graph.inputs}
        for name, dims in shapes.items():
            if name not in inputs:
                known, meant = ", ".join(map(repr, inputs)) or "none", did_you_mean(name, inputs)
                raise OptionError(f"fix_shapes: the model has no input '{name}'; it has {known}{meant}.")
            self._bind(inputs[name], dims)
        for value in model.graph.inputs:
            value.shape = self._bound(value.shape)
        for value in [
            value for node in model.graph for value in node.outputs
        ]:  # declared sizes may be wrong, so they are inferred again
            value.shape = forgotten(value.shape, lambda dim: not isinstance(dim, int) and dim.value in self._sizes)
        self.messages = [f"built in: {name} is {shape_name(inputs[name].shape)}" for name in shapes]

    def put_into_outputs(self, ctx: Context) -> None:
        """Infer all shapes from the built-in sizes, and declare the inferred sizes at the outputs.

        A dimension of an output keeps its name if its size is not inferred. This holds even if an input has a dimension with this
        name and got a size: a model may use one name for the steps of an input and for the fewer steps of an output. A wrong
        declaration would change results, because onnxruntime replaces a Shape node by the declared sizes of its operand.

        A branch of an If may contradict the built-in sizes. Therefore the sizes are hidden from such branches before the inference.
        """
        model = ctx.model
        hide_sizes_from_branches(ctx)
        infer_model(model)
        for value, before in zip(model.graph.outputs, self._declared, strict=True):
            fits = before is None or rank_of(value) == len(before)
            value.shape = refined(without_names(value.shape) if fits else None, before)

    def _bind(self, value: ir.Value, dims: Sequence[int | None]) -> None:
        if not isinstance(value.type, ir.TensorType):
            raise OptionError(f"fix_shapes: input '{value.name}' is no tensor.")
        if value.shape is None:
            value.shape = ir.Shape(list(dims))
            return
        if len(dims) != len(value.shape):
            raise OptionError(f"fix_shapes: input '{value.name}' has {len(value.shape)} dimensions, not {len(dims)}.")
        for axis, (declared, size) in enumerate(zip(value.shape.dims, dims, strict=True)):
            if size is None:
                continue
            if isinstance(declared, int) and declared != size:
                raise OptionError(f"fix_shapes: dimension {axis} of '{value.name}' is {declared}, not {size}.")
            if not isinstance(declared, int) and declared.value:
                known = self._sizes.setdefault(declared.value, size)
                if known != size:
                    raise OptionError(
                        f"fix_shapes: dimension '{declared.value}' would be {known} and {size}. If the model uses one "
                        f"name for two sizes, rename one of them, as in dimension {axis} of the input {quoted(value.name)}."
                    )
        value.shape = refined(ir.Shape(dims), value.shape)

    def _bound(self, shape: ir.Shape | None) -> ir.Shape | None:
        if shape is None:
            return None
        return ir.Shape([dim if isinstance(dim, int) else self._sizes.get(dim.value or "", dim) for dim in shape.dims])
