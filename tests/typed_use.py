"""What users write, for mypy alone (``mypy tests/typed_use.py``): it has to find this right, and wrong where it is told to ignore it."""

import onnx
import onnx_ir as ir

import ortscan


def use() -> None:
    """Use what comes back of all kinds of models."""
    onnx.save(ortscan.optimize("m.onnx", target="qnn", fix_dims={"T": 4}, verify="full"), "o.onnx")
    model, report = ortscan.optimize("m.onnx", report=True)
    onnx.save(model, "o.onnx")
    print(report.summary())
    ir.save(ortscan.loop(ir.load("m.onnx"), states={"h": "h1"}, scan={"x": 1}, stop="done", max_steps="n"), "o.onnx")
    ortscan.loop("m.onnx", states={"h": "h1"}, steps=3)  # type: ignore[call-overload]
    own: ir.Model = ortscan.optimize(ir.load("m.onnx"))
    onnx.save(ortscan.migrate("m.onnx", "latest"), "o.onnx")
    for loop in ortscan.explain(own, advice=True, fast_math=True).loops:
        print(loop.where, [advice.flags for advice in loop.advice])
    ortscan.optimize("m.onnx", target="gpu")  # type: ignore[call-overload]
    ortscan.explain("m.onnx", fast_maths=True)  # type: ignore[call-arg]


def readme() -> None:
    """Do what the README shows: these are its lines."""
    model = "examples/mlp_per_step.onnx"  # or bytes, onnx.ModelProto, onnx_ir.Model; the original is never changed
    smaller = ortscan.optimize(model, output="out.onnx")  # return the result and write it; external weights go to out.onnx.data
    print(ortscan.verify(model, smaller).summary())
    for loop in ortscan.explain(model).loops:  # changes nothing
        print(loop.where, loop.fate, [reason.code for reason in loop.reasons])
    print(ortscan.bench(model, smaller, seconds=2).summary())  # times, and speed-ups with confidence intervals
    ortscan.migrate(model, 21, output="opset_21.onnx")  # the same model in another opset; also "auto" and "latest"
    session = ortscan.InferenceSession(model)  # runs the optimised model, and caches it for the next start
    print(session.get_inputs())
