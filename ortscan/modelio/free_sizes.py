"""Sizes below zero, which some exporters write for free ones, as onnxruntime reads them."""

import onnx_ir as ir

from ortscan.modelio.interface import without_negative_sizes
from ortscan.modelio.slots import graphs_in

__all__ = ["free_negative_sizes"]


def free_negative_sizes(model: ir.Model) -> None:
    """Leave sizes below zero out of the shapes that are declared in ``model``; the interface keeps its words as yet."""
    for graph in graphs_in(model):
        for value in (*graph.inputs, *(output for node in graph for output in node.outputs)):
            value.shape = without_negative_sizes(value.shape)
