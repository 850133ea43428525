"""One description of an option is its keyword, its flag and its entry in sessions."""

import argparse
import inspect
from typing import Annotated, Any, TypedDict

from ortscan.option_texts import read_dim, read_dims, read_flag
from ortscan.option_types import Option, options_of, plain_meaning, signature_with
from ortscan.verb_options import OPTIMIZE_OPTIONS, REWRITING_OPTIONS


class Described(TypedDict, total=False):
    """Two options."""

    brisk: Annotated[bool, Option(False, "be [quick](Q.md), with `x`", "--brisk", "be quick", session=read_flag)]
    ranks: Annotated[dict[str, int] | None, Option(None, "ranks", "--rank -r T=4", "a rank", read=read_dim, session=read_dims)]


def verb(model: str, *, report: bool = False, **options: Any) -> None:
    """Do nothing."""


def test_options_are_keywords_with_their_defaults() -> None:
    signature = signature_with(verb, Described)
    assert {name: parameter.default for name, parameter in signature.parameters.items()} == {
        "model": inspect.Parameter.empty,
        "brisk": False,
        "ranks": None,
        "report": False,
    }
    assert signature.parameters["brisk"].annotation is bool


def test_options_are_read_from_the_command_line_and_from_entries() -> None:
    options, parser = options_of(Described), argparse.ArgumentParser()
    for option in options.values():
        option.add_to(parser)
    for texts, values in (([], [False, None]), (["--brisk", "--rank", "T=1", "--rank", "T=2"], [True, {"T": 2}])):
        assert [option.value_in(parser.parse_args(texts)) for option in options.values()] == values
    assert [option.session("T=2" if name == "ranks" else "on") for name, option in options.items() if option.session] == [
        True,
        {"T": 2},
    ]
    assert plain_meaning("brisk", options["brisk"]) == "brisk: be quick, with ``x``."


def test_every_option_of_the_rewriting_has_a_flag_and_a_default_that_it_accepts() -> None:
    for option in REWRITING_OPTIONS.values():
        assert option.flags.startswith("--")
        assert option.help
        option.check(option.default)
    assert [*OPTIMIZE_OPTIONS][: len(REWRITING_OPTIONS)] == [*REWRITING_OPTIONS]
