"""Print the changes of an opset: each changed operator, whether it is spelt alike, its removed types and changed text.

python -m tests.support.new_opset 28
"""

import difflib
import sys
from collections.abc import Iterator

import onnx

from rewrites.migration.versions import differ_only_in_types, schema_of

__all__ = ["changes"]


def changes(opset: int) -> Iterator[str]:
    for now in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda schema: schema.name):
        if now.domain != "" or now.since_version != opset:
            continue
        old = schema_of(now.name, opset - 1)
        if old is None:
            yield f"{now.name}: new"
            continue
        alike = "alike" if differ_only_in_types(now.name, opset - 1, opset) else "otherwise"
        lost = sorted(_types(old) - _types(now))
        yield f"{now.name}: spelt {alike}" + (f", no longer takes {', '.join(lost)}" if lost else "")
        for line in difflib.unified_diff(old.doc.splitlines(), now.doc.splitlines(), lineterm="", n=0):
            yield f"    {line}"


def _types(schema: onnx.defs.OpSchema) -> set[str]:
    return {kind for each in schema.type_constraints for kind in each.allowed_type_strs}


if __name__ == "__main__":
    print(*changes(int(sys.argv[1])), sep="\n")
