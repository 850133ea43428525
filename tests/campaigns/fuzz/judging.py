"""What became of a drawn model, in the process that runs it: stages are announced, since onnxruntime may end the process.

Works around ORT-SCAN-8-NOTHING, ORT-LOOP-NO-STEPS-SIZES and ONNX-NAMES-OF-OTHER-GRAPHS.
"""

import time
import warnings
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

import ortscan
from ortscan import OrtscanError
from ortscan.soundness.new_fault import Original
from rewrites.analysis.shapes.shown_scopes import make_names_unique
from rewrites.base.errors import InvariantBroken
from tests.campaigns.fuzz.case import Case, Feeds
from tests.campaigns.fuzz.comparing import coarseness, difference
from tests.campaigns.fuzz.trust import is_shaky, runs_as_written, session_of
from tests.campaigns.fuzz.twists.declarations import MISDECLARED
from tests.campaigns.fuzz.unaliased import unaliased
from tests.support.runtime import run_session

__all__ = ["BAD", "Judgement", "judge"]

BAD = ("wrong", "invalid", "dead", "foreign", "slow", "unstable", "blamed")
"""Verdicts that a campaign must not bring."""

Announce = Callable[[str], None]
_BLAME = "defect of ortscan"


@dataclass
class Judgement:
    """``verdict`` is one of BAD (``blamed``: a warning says that a rule is wrong), ``ok``, ``refused`` (by ortscan), ``unfit`` (onnxruntime cannot run the original) or ``undrawn``."""

    verdict: str
    detail: str = ""
    result: bytes = b""
    changed: bool = False
    seconds: dict[str, float] = field(default_factory=dict)


def judge(case: Case, announce: Announce = lambda stage: None, dead: Collection[int] = (), twice: bool = False) -> Judgement:
    """``dead``: feeds that ended a process with the original already. ``twice``: also ask for the same bytes again."""
    seconds: dict[str, float] = {}
    clock = time.process_time()
    announce("original load")
    source = case.model.SerializeToString()
    try:
        onnx.checker.check_model(case.model)
        session = session_of(source)
        repaired = unaliased(case.model)
        oracle = session if repaired is None else session_of(repaired.SerializeToString())
    except Exception as error:
        return Judgement("unfit", f"load: {_said(error)}")
    whole = _complaint(case.model, strict=False) is None
    strict = whole and _complaint(case.model, strict=True) is None
    expected: list[list[Any] | None] = []
    for k, feeds in enumerate(case.feeds):
        announce(f"original run {k}")
        try:
            expected.append(None if k in dead else run_session(oracle, feeds))
        except Exception as error:
            if k == 0:
                return Judgement("unfit", f"run: {_said(error)}")
            expected.append(None)
    if any(array is None for outputs in expected for array in outputs or ()):
        return Judgement("unfit", "gives no value for an output")
    misdeclared = MISDECLARED in case.about.get("features", ())
    if not misdeclared and any(_lies(case.model, outputs) for outputs in expected if outputs is not None):
        return Judgement("unfit", "declares other sizes than it has")
    seconds["original"] = time.process_time() - clock
    announce("rewrite")
    clock = time.process_time()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = _rewritten(case)
        data = result.SerializeToString()
    except InvariantBroken as error:
        return Judgement("foreign", _said(error))
    except OrtscanError as error:
        return Judgement("refused", f"{type(error).__name__}: {str(error).splitlines()[0][:300]}")
    except Exception as error:
        return Judgement("foreign", _said(error))
    seconds["rewrite"] = time.process_time() - clock
    judgement = Judgement("ok", result=data, changed=data != source, seconds=seconds)
    if twice and _rewritten(case).SerializeToString() != data:
        return _as(judgement, "unstable", "the second call gives other bytes")
    if case.model.SerializeToString() != source:
        return _as(judgement, "invalid", "the caller's model was changed")
    clock = time.process_time()
    lying = misdeclared or all(_lies(case.model, outputs, of_nothing=True) for outputs in expected if outputs is not None)
    said = _interface(case, result, lying, [str(warning.message) for warning in caught]) or (
        _complaint(result, strict=False) if whole else _plain(result)
    )
    said = said or (_complaint(result, strict=True) if strict else None)
    if said and not (said.startswith("inference:") and Original(case.model).fault_with_all_constants is not None):
        return _as(judgement, "invalid", said)
    blame = next((str(warning.message) for warning in caught if _BLAME in str(warning.message)), None)
    if blame is not None:
        return _as(judgement, "blamed", blame)
    announce("result load")
    try:
        after = session_of(data, case.options.get("custom_ops", False) or case.kind == "native")
        own = unaliased(result) if case.kind == "migrate" else None  # migrating repairs nothing
        after = after if own is None else session_of(own.SerializeToString())
    except Exception as error:
        return _as(judgement, "invalid", f"load: {_said(error)}")
    coarse = coarseness(case.model)
    for k, feeds in enumerate(case.feeds):
        lies = not misdeclared and _lies(case.model, expected[k] or [], of_nothing=True)
        if k in dead or not _fits(case, feeds) or lies:
            continue
        announce(f"result run {k}")
        try:
            actual = run_session(after, feeds)
        except Exception as error:
            if expected[k] is None or _garbage(case, feeds) or not runs_as_written(case, feeds):
                continue
            return _as(judgement, "wrong", f"feed {k}: run: {_said(error)}")
        before = expected[k]
        if before is None or _garbage(case, feeds):
            continue
        said = difference(before, actual, coarse)
        if said and not is_shaky(case, oracle, feeds, before, actual):
            return _as(judgement, "wrong", f"feed {k}: {said}")
    seconds["checks"] = time.process_time() - clock
    return judgement


def _lies(model: ModelProto, outputs: list[Any], *, of_nothing: bool = False) -> bool:
    """Whether an output is of another size than declared, which onnxruntime only warns of.

    ``of_nothing``: outputs without elements count too, the sizes of which onnxruntime may have guessed in a Loop without a step.
    """
    for info, array in zip(model.graph.output, outputs, strict=False):
        dims = info.type.tensor_type.shape.dim
        if info.type.tensor_type.HasField("shape") and (of_nothing or array.size):
            if len(dims) != np.ndim(array):
                return True
            if any(dim.HasField("dim_value") and dim.dim_value != size for dim, size in zip(dims, np.shape(array), strict=True)):
                return True
    return False


def _as(judgement: Judgement, verdict: str, detail: str) -> Judgement:
    judgement.verdict, judgement.detail = verdict, detail
    return judgement


def _rewritten(case: Case) -> ModelProto:
    if case.kind == "migrate":
        made = ortscan.migrate(case.model, verify=False, **case.options)
    else:
        made = ortscan.optimize(case.model, verify=False, **case.options)
    assert isinstance(made, ModelProto)
    return made


def _plain(model: ModelProto) -> str | None:
    try:
        onnx.checker.check_model(model)
    except Exception as error:
        return f"checker: {_said(error)}"
    return None


def _complaint(model: ModelProto, strict: bool) -> str | None:
    """What the full check, or strict inference, says against the model."""
    try:
        if strict:
            unique = ModelProto()
            unique.CopyFrom(model)
            make_names_unique(unique)
            onnx.shape_inference.infer_shapes(unique, check_type=True, strict_mode=True, data_prop=True)
        else:
            onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        if strict and "Invalid rank for" in str(error):
            return None  # onnx's propagation of data takes matrices of integers for vectors
        return f"{'inference' if strict else 'checker'}: {_said(error)}"
    return None


def _interface(case: Case, result: ModelProto, lying: bool, warnings: list[str]) -> str | None:
    """Return what differs in the interface, without the sizes if shapes are fixed or ``lying`` outputs declare wrong ones.

    An output may lose a size of which a warning says that the branches of an If contradict it.
    """
    fixed = "fix_shapes" in case.options or lying
    for before, after in ((case.model.graph.input, result.graph.input), (case.model.graph.output, result.graph.output)):
        old, new = _public(case.model, before), _public(result, after)
        warned = {info.name for info in old if any(f"for the output {info.name!r}" in text for text in warnings)}
        old = [_opened(info, after) if info.name in warned else info for info, after in zip(old, new, strict=False)]
        if not fixed and [info.SerializeToString(deterministic=True) for info in old] != [
            info.SerializeToString(deterministic=True) for info in new
        ]:
            changed = [f"{a} became {b}" for a, b in zip(old, new, strict=False) if a != b] or ["number"]
            return f"interface: {' '.join(changed[0].split())}"
        if [info.name for info in old] != [info.name for info in new]:
            return "interface: names differ"
    return None


def _opened(info: onnx.ValueInfoProto, after: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    """Return ``info`` without the sizes that ``after`` leaves open."""
    opened = onnx.ValueInfoProto()
    opened.CopyFrom(info)
    for dim, other in zip(opened.type.tensor_type.shape.dim, after.type.tensor_type.shape.dim, strict=False):
        if other.WhichOneof("value") is None:
            dim.Clear()
    return opened


def _public(model: ModelProto, infos: Iterable[onnx.ValueInfoProto]) -> list[onnx.ValueInfoProto]:
    """All but the initializers that had to be listed as inputs up to IR 3, and could not be fed."""
    listed = {tensor.name for tensor in model.graph.initializer} if model.ir_version < 4 else set()
    return [info for info in infos if info.name not in listed]


def _fits(case: Case, feeds: Feeds) -> bool:
    fixed = case.options.get("fix_shapes", {})
    if not fixed:
        return True
    return all(array.shape == case.feeds[0].get(name, array).shape for name, array in feeds.items())


def _garbage(case: Case, feeds: Feeds) -> bool:
    """Whether onnxruntime's own results are not asked for: those of a Scan of opset 8 without steps are uninitialised memory, and
    who names ``guard-recurrence`` asks for the operators' own.
    """
    if "guard-recurrence" in case.options.get("passes", ()) and _empty(feeds):
        return True
    opset = next((o.version for o in case.model.opset_import if o.domain in ("", "ai.onnx")), 0)
    return opset == 8 and _empty(feeds)


def _empty(feeds: Feeds) -> bool:
    return any(array.size == 0 or (array.ndim == 0 and array.dtype == np.int64 and array == 0) for array in feeds.values())


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"
