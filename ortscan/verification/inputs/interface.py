"""Compare the interfaces of two models: names, order, types and ranks of their inputs and outputs."""

from collections.abc import Iterator, Sequence

import onnx

from ortscan.running.specs import SessionSpec, input_specs, output_specs, overridable_names

__all__ = ["interface_differences", "quoted"]


def interface_differences(before: onnx.ModelProto, after: onnx.ModelProto) -> list[str]:
    """Return a sentence for each difference between two interfaces that a caller could notice.

    Inputs with an initializer need not be fed, so they are not compared. But if a caller can override the initializer of an input
    in the first model, the second model must have this input too.
    """
    differences: list[str] = []
    for what, specs in (("input", input_specs), ("output", output_specs)):
        old, new = specs(before.graph), specs(after.graph)
        names, new_names = [spec.name for spec in old], [spec.name for spec in new]
        if names != new_names:
            differences.append(_names_differ(what, names, new_names))
        else:
            differences += [text for pair in zip(old, new, strict=True) for text in _specs_differ(what, *pair)]
    lost = overridable_names(before) - {value.name for value in after.graph.input}
    return [*differences, *(f"input '{name}', which had a default that could be overridden, is missing" for name in sorted(lost))]


def _names_differ(what: str, before: list[str], after: list[str]) -> str:
    missing = [name for name in before if name not in after]
    extra = [name for name in after if name not in before]
    if missing or extra:
        parts = [f"{verb} {quoted(names)}" for verb, names in (("lost", missing), ("gained", extra)) if names]
        return f"the {what}s differ: {' and '.join(parts)}"
    return f"the {what}s are in another order: {quoted(before)} before, {quoted(after)} after"


def _specs_differ(what: str, before: SessionSpec, after: SessionSpec) -> Iterator[str]:
    subject = f"{what} '{before.name}'"
    if before.declared != after.declared:
        if before.declared != "unknown type":
            yield f"{subject} is {before.declared} before and {after.declared} after"
    elif before.dims is None:
        return
    elif after.dims is None:
        yield f"{subject} has rank {len(before.dims)} before and no declared rank after"
    elif len(before.dims) != len(after.dims):
        yield f"{subject} has rank {len(before.dims)} before and {len(after.dims)} after"
    else:
        for axis, (old, new) in enumerate(zip(before.dims, after.dims, strict=True)):
            if isinstance(old, int) and isinstance(new, int) and old != new:
                yield f"{subject} has size {old} in axis {axis} before and {new} after"


def quoted(names: Sequence[str]) -> str:
    """Return names in quotes, separated by commas."""
    return ", ".join(f"'{name}'" for name in names)
