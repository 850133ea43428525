"""Names that do not fit the step are refused in one sentence."""

from typing import Any

import onnx_ir as ir
import pytest

from rewrites.base.errors import OptionError
from rewrites.stepping.step_roles import RoleNames, read_roles
from tests.support.text import parsed

STEP = """g (float[2] h, float[2] x, int64[2] p, seq(float) s) => (float[2] h1, bool[2] d, float[3] y, int64[2] t, seq(float) s1) {
    h1 = Add (h, x) d = Less (h, x) y = Concat <axis = 0> (x, x) t = Neg (p) s1 = Identity (s) }"""


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"states": ["h"]}, "states must be a dict of inputs to outputs, such as {'h_in': 'h_out'}, not ['h']"),
        ({"states": {"hh": "h1"}}, "states: the step has no input 'hh', perhaps 'h' was meant; its inputs are 'h', 'x', 'p', 's'"),
        ({"states": {"h": "h2"}}, "states: the step has no output 'h2'; its outputs are 'h1', 'd', 'y', 't', 's1'"),
        (
            {"states": {"h": "t"}},
            "The output 't' cannot feed the state 'h': its type is int64, but the input has float32",
        ),
        ({"states": {"h": "y"}}, "The output 'y' cannot feed the state 'h': its shape is [3], but the input has [2]"),
        ({"scan": "x"}, "scan must be a list of names, or a dict of names to axes, not 'x'"),
        ({"scan": ["x", "x"]}, "scan names 'x' twice"),
        ({"scan": ["z"]}, "scan: the step has no input 'z'"),
        ({"scan": {"x": 2}}, "scan: the axis 2 of 'x' must be in -2..1"),
        ({"scan": {"x": "1"}}, "scan: the axis of 'x' must be a whole number, not '1'"),
        ({"scan": ["s"]}, "scan: 's' is no tensor, so it cannot have an axis for the steps"),
        ({"scan": ["h"]}, "The input 'h' has two roles; it can be a state, scanned or the counter"),
        ({"counter": "h"}, "The input 'h' has two roles"),
        ({"counter": "x"}, "The input 'x' has two roles"),
        ({"counter": "p"}, "counter: the input 'p' must be one int64 or int32 number, of the shape [] or [1]"),
        ({"counter": "q"}, "counter: the step has no input 'q'"),
        ({"stop": "h1"}, "stop: the output 'h1' must be bool, not float32; let the step compute a bool"),
        ({"stop": "done"}, "stop: the step has no output 'done'"),
        ({"max_steps": "x"}, "max_steps: the new input needs a name of its own, not 'x'"),
        ({"max_steps": 0}, "max_steps must be a whole number above 0, or the name of a new input, not 0"),
        ({"max_steps": True}, "max_steps must be a whole number above 0, or the name of a new input, not True"),
        ({"scan": ()}, "The number of steps is unknown: scan an input, or set max_steps"),
        ({"scan": (), "stop": "d"}, "The number of steps is unknown"),
        ({"outputs": "y"}, "outputs must be a list of names, not 'y'"),
        ({"outputs": ["z"]}, "outputs: the step has no output 'z'"),
        ({"outputs": ["y", "y"]}, "outputs names 'y' twice"),
        ({"outputs": []}, "outputs must name at least one output"),
        ({"outputs": ["y"], "stack": ["h1"]}, "stack: 'h1' is not among the returned outputs"),
        ({"stack": {"y": 3}}, "stack: the axis 3 of 'y' must be in -2..1"),
        ({"outputs": None}, "The output 's1' is no tensor, so its values cannot be stacked; return other outputs"),
    ],
)
def test_a_wrong_role_is_refused(names: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"states": {"h": "h1"}, "scan": ["x"], "outputs": ["h1", "y"]}
    with pytest.raises(OptionError) as raised:
        read_roles(ir.from_proto(parsed(STEP)), RoleNames(**(usual | names)))
    assert message in str(raised.value)


def test_an_axis_other_than_0_needs_a_known_rank() -> None:
    step = ir.from_proto(parsed("g (float[] x) => (float[] y) { y = Neg (x) }"))
    with pytest.raises(OptionError, match="the axis 1 of 'x' must be 0, because its rank is unknown"):
        read_roles(step, RoleNames({}, scan={"x": 1}))
    assert read_roles(step, RoleNames({}, scan=["x"])).scan == {"x": 0}


def test_outputs_are_last_values_of_states_or_stacked() -> None:
    roles = read_roles(ir.from_proto(parsed(STEP)), RoleNames({"h": "h1"}, ["x"], outputs=["y", "h1"]))
    assert (roles.outputs, roles.stack, roles.returned_states) == (["y", "h1"], {"y": 0}, ["h1"])
