"""The operators that onnxruntime runs on the CPU, as onnxruntime itself reports them."""

from functools import cache

import onnx
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

__all__ = ["has_kernel"]

_TYPE_NAMES = {"float32": "float", "float64": "double"}


@cache
def has_kernel(op: str, opset: int, dtype: str) -> bool:
    """Return True if `op` of the standard domain accepts `dtype` (numpy's name, or `string`) for its main type variable.

    The main variable is T, or else that of the first input. A float32 kernel counts for float16 too, because onnxruntime inserts
    casts.
    """
    try:
        schema = onnx.defs.get_schema(op, opset)
    except onnx.defs.SchemaError:
        return False
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    variable = "T" if "T" in allowed else schema.inputs[0].type_str
    tensor = f"tensor({_TYPE_NAMES.get(dtype, dtype)})"
    kernels = _kernel_types(op, schema.since_version, variable)
    return tensor in allowed[variable] and (tensor in kernels or (dtype == "float16" and "tensor(float)" in kernels))


def _kernel_types(op: str, since: int, variable: str) -> frozenset[str]:
    return frozenset(
        name for first, last, types in _kernels().get(op, ()) if first <= since <= last for name in types.get(variable, ())
    )


@cache
def _kernels() -> dict[str, list[tuple[int, int, dict[str, list[str]]]]]:
    """Return for each operator the types and the versions of each of its CPU kernels."""
    results: dict[str, list[tuple[int, int, dict[str, list[str]]]]] = {}
    for kernel in get_all_opkernel_def():
        if (kernel.domain, kernel.provider) == ("", "CPUExecutionProvider"):
            results.setdefault(kernel.op_name, []).append((*kernel.version_range, kernel.type_constraints))
    return results
