"""The work of splitting a body grows as the body does."""

from collections.abc import Callable

import onnx
import pytest

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.batching import Emission
from rewrites.fission import loop_fission
from tests.campaigns.benchmarks.large_models import delay_line, recurrent_body
from tests.rewrites.apply import apply, patches


def asked(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often splitting asks for the size or the stack of a value."""
    count = [0]

    def counted(function: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object) -> object:
            count[0] += 1
            return function(*args)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(StepSizes, "step_bytes", counted(StepSizes.step_bytes))
        patch.setattr(Emission, "has", counted(Emission.has))
        _, report = apply(model, [loop_fission])
    assert patches(report) == ["loop-fission"]
    return count[0]


@pytest.mark.parametrize("make", [recurrent_body, delay_line])
def test_twice_the_body_is_twice_the_work(make: Callable[[int], onnx.ModelProto], monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(make(120), monkeypatch) < 2.5 * asked(make(60), monkeypatch)
