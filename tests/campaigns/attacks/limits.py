"""Limits of time and memory: whatever a model asks for, the call ends soon after the one and below the other, with no process left."""

import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import onnx

import ortscan
from ortscan.errors import LimitExceeded
from tests.campaigns.attacks.endless import COMPUTED, TRUE
from tests.campaigns.attacks.frame import Box, attack, command, model_of, refused
from tests.campaigns.attacks.growing import IN_BODY, JOIN, chain

__all__: list[str] = []

SECONDS = 3
SLACK = 15
"""What starting and ending a process may take on a busy machine."""
SLOW = f"g (float[4] x) => (float[A] y) {{ {TRUE} {COMPUTED} }}"
MATRICES = "g (float[T] x) => (float[T] y) {{ s = Constant <value_ints = [6000, 6000]> () v0 = ConstantOfShape (s) {} q = ReduceMax <keepdims = 0> (v40) y = Add (x, q) }}"
WIDE = "g (float[T, 4096] x) => (float[T, 4096] y) {{ s = Constant <value_ints = [4096, 4096]> () w = ConstantOfShape (s) {} y = MatMul (x, w) }}"
VERBS: dict[str, Callable[..., Any]] = {
    "optimize": partial(ortscan.optimize, verify="full"),
    "migrate": lambda given, **limits: ortscan.migrate(given, 21, verify="full", **limits),
    "verify": lambda given, **limits: ortscan.verify(given, given, **limits),
}
MODELS = {
    "a slow loop": lambda: model_of(SLOW),
    "matrices that are multiplied to load it": lambda: model_of(MATRICES.format(chain("{1} = MatMul ({0}, {0})", 40))),
    "a slow loop in a Scan": lambda: model_of(
        f"g (float[T, 4] x) => (float[T, 4] y) {{ {TRUE} m = Constant <value_int = {10**15}> () y = Scan <num_scan_inputs = 1, body = k"
        " (float[4] a) => (float[4] r) { r = Loop (m, t, a) <body = e (int64 i, bool c, float[4] s) => (bool d, float[4] o)"
        " { d = Identity (c) o = Sin (s) }> }> (x) }"
    ),
}


def ends_in_time(verb: str, make: Callable[[], onnx.ModelProto], box: Box) -> None:
    given, started = make(), time.monotonic()
    if verb == "verify":
        assert VERBS[verb](given, time_limit=SECONDS).outcome == "inconclusive"
    else:
        refused(lambda: VERBS[verb](given, time_limit=SECONDS), f"{verb} took longer than its time_limit of {SECONDS} seconds")
    assert time.monotonic() - started < SECONDS + SLACK


for _verb in VERBS:
    for _what, _make in MODELS.items() if _verb != "optimize" else [*MODELS.items()][::2]:
        attack(f"{_verb} of {_what} in {SECONDS} s")(partial(ends_in_time, _verb, _make))


def many_nodes(count: int) -> onnx.ModelProto:
    made = model_of("g (float[T, 4] x) => (float[T, 4] y) { y = Neg (x) }")
    names = ["x", *(f"v{place}" for place in range(count)), "y"]
    del made.graph.node[:]
    for one, other in itertools.pairwise(names):
        made.graph.node.add(op_type="Neg", input=[one], output=[other])
    return made


@attack("50 000 nodes in less than a second")
def _(box: Box) -> None:
    given = many_nodes(50_000)
    for verb in ("optimize", "migrate", "explain"):
        call = {**VERBS, "explain": ortscan.explain}[verb]
        refused(lambda call=call: call(given, time_limit=0.2), "time_limit of 0.2 seconds")


@attack("20 000 nodes in 5 MiB", seconds=180)
def _(box: Box) -> None:
    given = many_nodes(20_000)
    for verb in ("optimize", "migrate"):
        error = refused(lambda verb=verb: VERBS[verb](given, memory_limit=5 << 20), "memory_limit of 5242880 bytes")
        assert isinstance(error, LimitExceeded)


@attack("a limit that verification's processes inherit", memory=4 << 30)
def _(box: Box) -> None:
    """The work is done in a process within the limit, and what that starts is too."""
    doubling = f"""g (float[1] x) => (float[N] y) {{ n = Constant <value_int = 60> () {TRUE} y = Loop (n, t, x) <body =
      b (int64 i, bool c, float[M] a) => (bool d, float[K] r) {{ d = Identity (c) r = Concat <axis = 0> (a, a) }}> }}"""
    started = time.monotonic()
    result = ortscan.optimize(model_of(doubling), verify="full", memory_limit=256 << 20, time_limit=60)
    assert isinstance(result, onnx.ModelProto)
    assert time.monotonic() - started < 60


@attack("verification that is given little memory")
def _(box: Box) -> None:
    given = model_of(IN_BODY.format(f"v0 = Identity (a) {chain(JOIN, 18)} q = ReduceMax <keepdims = 0> (v18)"))
    outcome = ortscan.verify(given, given, memory_limit=1000, time_limit=5)
    assert outcome.ok or outcome.limits_hit, outcome.summary()


@attack("limits on the command line")
def _(box: Box) -> None:
    onnx.save(model_of(SLOW), box.work / "m.onnx")
    for line in (
        ("migrate", box.work / "m.onnx", box.work / "out.onnx", "--opset", "21", "--time-limit", SECONDS),
        ("verify", box.work / "m.onnx", box.work / "m.onnx", "--time-limit", SECONDS),
        ("optimize", box.work / "m.onnx", box.work / "out.onnx", "--verify", "full", "--time-limit", SECONDS),
        ("explain", box.work / "m.onnx", "--time-limit", "0.05"),
    ):
        started = time.monotonic()
        assert command(*line)[0] != 0, line
        assert time.monotonic() - started < SECONDS + SLACK, line
        assert not (box.work / "out.onnx").exists()


@attack("limits that are none, on the command line")
def _(box: Box) -> None:
    onnx.save(model_of("g (float[T, 4] x) => (float[T, 4] y) { y = Neg (x) }"), box.work / "m.onnx")
    for option in ("--time-limit", "--memory-limit"):
        for value in ("0", "-1", "nan", "inf", "1e400", "", "9" * 5000, "0x10", "1P", "\N{ARABIC-INDIC DIGIT ONE}x"):
            code, _, said = command("explain", box.work / "m.onnx", f"{option}={value}")
            assert code == 2 or (code == 0 and value[0] == "9"), (option, value, code, said)
