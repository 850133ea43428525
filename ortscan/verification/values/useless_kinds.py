"""Which kinds of values change nothing for the inputs of a model, so that no case is spent on them."""

from collections.abc import Mapping, Sequence

from ortscan.ort.element_types import numpy_type
from ortscan.running.specs import Spec
from ortscan.verification.values.make_value import FLOAT_KINDS
from ortscan.verification.values.roles import Role
from ortscan.verification.values.row_lengths import ROW_KINDS, takes_row_kind

__all__ = ["useless_kinds"]

_FOR_ALL = frozenset(["large", "mixed", "zeros"])


def useless_kinds(missing: Sequence[Spec], roles: Mapping[str, Role]) -> set[str]:
    """Return the kinds of values that would change nothing."""
    kinds = [numpy_type(spec.elem_type).kind for spec in missing if not roles.get(spec.name, Role()).decisive]
    lengths = any(roles[spec.name].lengths for spec in missing if spec.name in roles)
    useless = set[str]() if set(kinds) & set("fV") else set(FLOAT_KINDS - _FOR_ALL)
    lasting = {kind for kind in ROW_KINDS if any(takes_row_kind(roles.get(spec.name), kind) for spec in missing)}
    return useless | (set() if lengths else {"empty rows"}) | (set(ROW_KINDS) - lasting)
