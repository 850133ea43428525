"""What a loop plan costs a run beside its steps: ``python -m tests.campaigns benchmarks.call_overhead``.

A chain of nodes in one session, each a plan of a loop, against a chain of Identity nodes, interleaved, with one thread: nanoseconds
a node, for loops of no step and of one, whose stacked results are read or not. What Python costs a run is not in it.
"""

from functools import partial

import numpy as np
import onnx
import onnxruntime as ort

import ortscan
from ortscan.native.library import register_library
from tests.campaigns.benchmarks.timing import best_of
from tests.support.text import model_from_text

__all__ = ["main"]

_NODES, _ROUNDS, _SECONDS = 400, 40, 0.02
_LOOP = """g (float[4] h0, float[T,4] xs) => (float[4] hN{stack}) {{
  hN, ys = Scan <num_scan_inputs = 1, body = b (float[4] h, float[4] x) => (float[4] h1, float[4] y)
    {{ a = Mul (h, x) h1 = Tanh (a) y = Identity (h1) }}> (h0, xs) }}"""


def _plan(*, stacked: bool) -> onnx.ModelProto:
    loop = model_from_text(_LOOP.format(stack=", float[T,4] ys" if stacked else ""), 18)
    return ortscan.optimize(loop, native=True, verify=False)


def _chain(model: onnx.ModelProto, link: onnx.NodeProto) -> onnx.ModelProto:
    """Return ``model`` with many nodes like ``link`` one after the other, from its first input to its first output."""
    chain = onnx.ModelProto()
    chain.CopyFrom(model)
    del chain.graph.node[:], chain.graph.output[1:]
    given = "h0"
    for i in range(_NODES):
        node = chain.graph.node.add()
        node.CopyFrom(link)
        node.name, node.input[0] = f"link {i}", given
        node.output[:] = ["hN" if i == _NODES - 1 else f"h {i}", *(f"stack {i}" for _ in link.output[1:])]
        given = node.output[0]
    return chain


def _session(model: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # which would take the copies away
    register_library(options)
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def main() -> None:
    for stacked in (False, True):
        model = _plan(stacked=stacked)
        (plan,) = model.graph.node
        sessions = [_session(_chain(model, link)) for link in (onnx.helper.make_node("Identity", ["h0"], ["hN"]), plan)]
        for steps in (0, 1):
            feeds = {"h0": np.ones(4, np.float32), "xs": np.ones((steps, 4), np.float32)}
            runs = [partial(session.run, ["hN"], feeds) for session in sessions]
            copy, run = (1e9 * seconds / _NODES for seconds in best_of(runs, _ROUNDS, _SECONDS))
            print(
                f"steps {steps}  results {len(plan.output)}   Identity {copy:5.0f} ns   plan {run:5.0f} ns   more {run - copy:5.0f} ns"
            )


if __name__ == "__main__":
    main()
