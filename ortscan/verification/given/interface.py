"""Whether two models can be called alike: names, order, types and ranks of inputs and outputs."""

from collections.abc import Sequence

import onnx

from ortscan.running.specs import Spec, input_specs, output_specs, overridable_names

__all__ = ["interface_differences", "quoted"]


def interface_differences(before: onnx.ModelProto, after: onnx.ModelProto) -> list[str]:
    """One sentence per difference a caller could notice; empty where there is none.

    Inputs with an initializer need not be fed and are not compared, save that one a caller could override must stay so.
    """
    found = _compare("input", input_specs(before.graph), input_specs(after.graph))
    found += _compare("output", output_specs(before.graph), output_specs(after.graph))
    lost = overridable_names(before) - {value.name for value in after.graph.input}
    found += [f"input '{name}' had a default that could be overridden and is gone" for name in sorted(lost)]
    return found


def _compare(what: str, before: Sequence[Spec], after: Sequence[Spec]) -> list[str]:
    names, new_names = [spec.name for spec in before], [spec.name for spec in after]
    if names != new_names:
        return [_names_differ(what, names, new_names)]
    return [text for old, new in zip(before, after, strict=True) for text in _specs_differ(what, old, new)]


def _names_differ(what: str, before: list[str], after: list[str]) -> str:
    missing = [name for name in before if name not in after]
    extra = [name for name in after if name not in before]
    if missing or extra:
        parts = [f"lost {quoted(missing)}"] if missing else []
        parts += [f"gained {quoted(extra)}"] if extra else []
        return f"the {what}s differ: {' and '.join(parts)}"
    return f"the {what}s are in another order: {quoted(before)} before, {quoted(after)} after"


def _specs_differ(what: str, before: Spec, after: Spec) -> list[str]:
    if before.declared == "unknown type":
        return []
    if before.declared != after.declared:
        return [f"{what} '{before.name}' is {before.declared} before and {after.declared} after"]
    if before.dims is None:
        return []
    if after.dims is None:
        return [f"{what} '{before.name}' has rank {len(before.dims)} before and no declared rank after"]
    if len(before.dims) != len(after.dims):
        return [f"{what} '{before.name}' has rank {len(before.dims)} before and {len(after.dims)} after"]
    return [
        f"{what} '{before.name}' has size {old} in axis {axis} before and {new} after"
        for axis, (old, new) in enumerate(zip(before.dims, after.dims, strict=True))
        if isinstance(old, int) and isinstance(new, int) and old != new
    ]


def quoted(names: Sequence[str]) -> str:
    """Return names in quotes, with commas between."""
    return ", ".join(f"'{name}'" for name in names)
