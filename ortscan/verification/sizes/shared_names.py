"""One name that inputs declare for sizes that cannot be the same: exporters name dimensions ``N`` or ``dynamic`` all over.

    x [T, N],  z [N],  x @ W [5, 4] + z @ V [7, 4]    ->    x [T, 'N of x[1]'],  z ['N of z[0]']

onnxruntime does not ask whether sizes of one name agree.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from ortscan.running.specs import Spec

__all__ = ["shared_names", "told_apart"]


def shared_names(specs: Sequence[Spec]) -> set[str]:
    """Return the names that dimensions have more than once."""
    counted = Counter(dim for spec in specs for dim in spec.dims or () if isinstance(dim, str))
    return {name for name, times in counted.items() if times > 1}


def told_apart(specs: Sequence[Spec], names: Collection[str]) -> list[Spec]:
    """Return ``specs`` with a name of its own for each dimension called one of ``names``."""

    def apart(spec: Spec) -> Spec:
        dims = tuple(f"{dim} of {spec.name}[{axis}]" if dim in names else dim for axis, dim in enumerate(spec.dims or ()))
        return spec if spec.dims is None else replace(spec, dims=dims)

    return [apart(spec) for spec in specs]
