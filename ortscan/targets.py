"""Where a model will run, as data: which operator domains the target has beside the standard one, and whether it runs loops.

Source: onnxruntime 1.31 kernel tables and the operator lists of its execution providers.
"""

from dataclasses import dataclass

from rewrites.errors import OptionError

__all__ = ["TARGETS", "Target", "target_named"]

_MICROSOFT = frozenset({"com.microsoft"})


@dataclass(frozen=True)
class Target:
    """One place to run a model.

    ``domains``: operator domains a rewrite may use beside the standard one. ``loops``: whether Scan and Loop run there natively.
    ``native``: whether recurrent nodes are taken even where onnxruntime on a CPU would run the loop faster.
    """

    name: str
    domains: frozenset[str] = frozenset()
    loops: bool = False
    native: bool = True


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("onnx", loops=True),
        Target("cpu", _MICROSOFT, loops=True, native=False),
        Target("cuda", loops=True),
        Target("tensorrt", loops=True),
        Target("directml"),
        Target("webgpu"),
        Target("coreml"),
        Target("nnapi"),
        Target("qnn"),
        Target("openvino", loops=True),
    )
}


def target_named(name: str) -> Target:
    """Give the target called ``name``; raises OptionError where there is none."""
    if name not in TARGETS:
        raise OptionError(f"target '{name}' is not known; the targets are {', '.join(TARGETS)}.")
    return TARGETS[name]
