"""What is done to a hostile model: each verb, in one process, since that it ends well is what is asked of them all."""

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import onnx

import ortscan
from ortscan.errors import OrtscanError, OrtscanWarning
from ortscan.running import budget
from ortscan.verification import verifier
from tests.campaigns.attacks.frame.box import Box
from tests.campaigns.attacks.frame.demands import survived
from tests.campaigns.attacks.frame.registry import attack
from tests.support.text import parsed

__all__ = ["attack_all_verbs", "model_of", "survives_all_verbs"]

SECONDS = 0.4
"""How long each comparison may look at a model, those of optimize and migrate included."""
Make = Callable[[], Any]


def model_of(text: str, opset: int = 18) -> onnx.ModelProto:
    """Parse a graph, and functions of the domain ``f`` behind it."""
    return parsed(text, opset, domains=', "f": 1')


def survives_all_verbs(given: Any, *words: str) -> dict[str, Any]:
    """Demand that each verb gives something, or an OrtscanError that holds ``words``; return what they gave or raised."""
    calls: dict[str, Callable[[], Any]] = {
        "optimize": lambda: ortscan.optimize(given),
        "explain": lambda: ortscan.explain(given),
        "migrate": lambda: ortscan.migrate(given, 21),
        "verify": lambda: ortscan.verify(given, given, time_limit=SECONDS),
    }
    found = {}
    budget.QUICK_SECONDS = verifier.QUICK_SECONDS = SECONDS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OrtscanWarning)
        for verb, call in calls.items():
            outcome = found[verb] = survived(call)
            missing = [word for word in words if word not in str(outcome)]
            assert not words or isinstance(outcome, OrtscanError), f"{verb} gave {str(outcome)[:300]}"
            assert not missing, f"{verb}: {missing} not in: {outcome}"
            if verb == "verify" and not isinstance(outcome, OrtscanError):
                assert outcome.outcome != "different", outcome.summary()
                assert outcome.ok or outcome.problems, outcome.summary()
    return found


def attack_all_verbs(area: str, models: Mapping[str, Make | tuple[Make, str]], *, memory: int = 2 << 30) -> None:
    """Note an attack of the module ``area`` for each of ``models``, by what it is; with words where it is to be refused."""
    for what, given in models.items():
        make, words = given if isinstance(given, tuple) else (given, "")
        attack(what, area=area, memory=memory)(partial(_attacked, make, words))


def _attacked(make: Make, words: str, box: Box) -> None:
    survives_all_verbs(make(), *[words] if words else [])
