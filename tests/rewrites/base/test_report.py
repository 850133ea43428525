"""A report is the same after it was kept as JSON, whatever is in it."""

import collections.abc
import dataclasses
import json
import types
import typing
from collections import Counter
from typing import Any

import pytest

from rewrites.base.report import Fired, KernelGap, LoopReport, NodeReport, Reason, RewriteReport


def filled(kind: Any) -> Any:
    """A value of a type in which nothing is empty: of a dataclass, one with every field filled."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{field.name: filled(hints[field.name]) for field in dataclasses.fields(kind)})
    if origin is list:
        return [filled(arguments[0]), filled(arguments[0])]
    if origin is tuple:
        return tuple(map(filled, arguments))
    if origin is collections.abc.Mapping:
        return {"a": filled(arguments[1])}
    if origin is Counter:
        return Counter(a=1, b=2)
    if origin is typing.Literal:
        return arguments[-1]
    if origin is types.UnionType:
        return filled(arguments[0])
    return {int: 3, str: "ä\n\ud800", bool: True, float: 0.5, typing.Any: [1, 2]}[kind]


@pytest.mark.parametrize("kind", [Fired, KernelGap, LoopReport, NodeReport, Reason, RewriteReport])
def test_every_field_is_filled(kind: type):
    made = filled(kind)
    for field in dataclasses.fields(kind):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        assert getattr(made, field.name) != default or field.name in ("fate",)


def test_a_report_comes_back_from_json_as_it_was():
    for report in (filled(RewriteReport), RewriteReport()):
        again = RewriteReport.from_dict(json.loads(json.dumps(report.to_dict())))
        assert again == report
        for field in dataclasses.fields(RewriteReport):
            one, other = getattr(again, field.name), getattr(report, field.name)
            assert type(one) is type(other)
            assert not isinstance(one, list) or list(map(type, one)) == list(map(type, other))
