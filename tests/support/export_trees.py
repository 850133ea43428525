"""Exports the models of `tests/data/trees` from torch: `python -m tests.support.export_trees`, in an environment with torch."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["export_all"]

_FOLDER = Path(__file__).parents[1] / "data" / "trees"
_STEPS, _WIDTH = 9, 4


def export_all() -> None:
    """Write one model for each operator."""
    import torch
    from torch._higher_order_ops.associative_scan import associative_scan

    def linear(earlier: Any, later: Any) -> Any:
        return later[0] * earlier[0], later[0] * earlier[1] + later[1]

    def scan(operator: Callable[..., Any], values: Any, **options: Any) -> Any:
        return associative_scan(operator, values, dim=0, combine_mode="generic", **options)

    rows, matrices = torch.rand(_STEPS, _WIDTH), torch.rand(_STEPS, 3, 3)
    models: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "linear_reverse": (lambda a, b: scan(linear, (a, b), reverse=True), (rows, rows.clone())),
        "logaddexp": (lambda x: scan(torch.logaddexp, x), (rows,)),
        "matmul": (lambda x: scan(torch.matmul, x), (matrices,)),
        "selective_state": (lambda a, b: scan(linear, (torch.sigmoid(a), b))[1], (rows, rows.clone())),
    }
    for name, (compute, inputs) in models.items():

        class Model(torch.nn.Module):
            def forward(self, *values: Any, compute: Callable[..., Any] = compute) -> Any:
                return compute(*values)

        model = torch.onnx.export(Model().eval(), inputs, dynamo=True).model_proto
        for part in (model, model.graph, *model.graph.node, *model.graph.input, *model.graph.output, *model.graph.initializer):
            part.ClearField("metadata_props")
            part.ClearField("doc_string")
        del model.graph.value_info[:]
        (_FOLDER / f"{name}.onnx").write_bytes(model.SerializeToString())


if __name__ == "__main__":
    export_all()
