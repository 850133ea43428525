"""The activations of recurrent operators, and the lists of their parameters.

The attributes ``activation_alpha`` and ``activation_beta`` are compact lists: if an activation lacks the parameter, it has no entry
in the list. If a list is too short, the specification asks for "the default of the corresponding ONNX operator", but onnxruntime
uses 0 for three activations. ScaledTanh was once an experimental operator, and has no default in the specification. So this module
uses the defaults of onnxruntime's operator ScaledTanh, 1 and 1.

Works around ORT-RECURRENT-DEFAULTS.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["DEFAULTS", "PARAMETERS", "Function", "compact_parameters", "functions_with_parameters", "spelling_of"]


@dataclass(frozen=True)
class Function:
    """An activation: its ``name`` in recurrent operators, and its parameters.

    ``clip``: the argument is first clipped to -clip..clip. None for no clip.
    """

    name: str
    alpha: float = 0.0
    beta: float = 0.0
    clip: float | None = None


PARAMETERS: Mapping[str, tuple[float | None, float | None]] = {
    "Affine": (1.0, 0.0),
    "Elu": (1.0, None),
    "HardSigmoid": (0.2, 0.5),
    "LeakyRelu": (0.01, None),
    "Relu": (None, None),
    "ScaledTanh": (1.0, 1.0),
    "Sigmoid": (None, None),
    "Softplus": (None, None),
    "Softsign": (None, None),
    "Tanh": (None, None),
    "ThresholdedRelu": (1.0, None),
}
"""The defaults of alpha and beta for each activation. None: the activation has no such parameter."""

DEFAULTS: Mapping[str, tuple[str, ...]] = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
"""The default activations of one direction for each operator."""


def spelling_of(name: str) -> str | None:
    """Return the name of an activation as the specification spells it. ``name`` may have any case.

    Return None if the specification has no such activation.
    """
    return next((known for known in PARAMETERS if known.lower() == name.lower()), None)


def functions_with_parameters(names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]) -> list[Function]:
    """Return the activations ``names`` with parameters from the compact lists ``alphas`` and ``betas``."""
    alpha, beta = iter(alphas), iter(betas)
    return [
        Function(name, _next_parameter(alpha, PARAMETERS[name][0]), _next_parameter(beta, PARAMETERS[name][1])) for name in names
    ]


def compact_parameters(functions: Sequence[Function]) -> tuple[list[float], list[float]]:
    """Return the compact lists ``activation_alpha`` and ``activation_beta`` for ``functions``."""
    alphas = [function.alpha for function in functions if PARAMETERS[function.name][0] is not None]
    return alphas, [function.beta for function in functions if PARAMETERS[function.name][1] is not None]


def _next_parameter(numbers: Iterator[float], default: float | None) -> float:
    """Return the next of ``numbers``, or ``default`` at their end; 0 if there is no such parameter."""
    return 0.0 if default is None else next(numbers, default)
